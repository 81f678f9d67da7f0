import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.analysis.core.KeywordAnalyzer;
import org.apache.lucene.analysis.standard.StandardAnalyzer;
import org.apache.lucene.analysis.synonym.SolrSynonymParser;
import org.apache.lucene.util.CharsRef;

/** Prints the rules that Lucene reads from synonym files: file, input, output, whether the input stays. */
public class ReadSynonyms {
    static String encoded(CharsRef text) {
        return Base64.getEncoder().encodeToString(text.toString().getBytes(StandardCharsets.UTF_8));
    }

    public static void main(String[] args) throws Exception {
        Analyzer analyzer = args[0].equals("keyword") ? new KeywordAnalyzer() : new StandardAnalyzer();
        StringBuilder found = new StringBuilder();
        for (int i = 1; i < args.length; i++) {
            String file = args[i];
            SolrSynonymParser parser = new SolrSynonymParser(true, true, analyzer) {
                @Override
                public void add(CharsRef input, CharsRef output, boolean stays) {
                    found.append(String.join("\t", file, encoded(input), encoded(output), "" + stays)).append("\n");
                    super.add(input, output, stays);
                }
            };
            try (Reader reader = Files.newBufferedReader(Path.of(file), StandardCharsets.UTF_8)) {
                parser.parse(reader);
            }
            parser.build();
        }
        System.out.print(found);
    }
}
