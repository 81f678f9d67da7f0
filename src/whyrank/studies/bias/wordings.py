"""Templates that come with the presets: queries, and texts with a slot that answer them or could."""

from __future__ import annotations

from collections.abc import Mapping

Wordings = tuple[tuple[str, str], ...]

WHEN_YEAR_PUBLISHED: Wordings = (("when did north carolina join ifta", "{value} north carolina join ifta"),)
_EVENTS = (
    "north carolina join ifta|North Carolina joined IFTA",
    "the new bridge open|the new bridge was opened",
    "the museum reopen|the museum reopened",
    "the smoking ban start|the smoking ban came into force",
    "the town get a railway station|the town got its railway station",
    "the factory close|the factory was closed",
    "the law on plastic bags pass|the law on plastic bags was passed",
    "the school change its name|the school changed its name",
    "the two banks merge|the two banks merged",
    "the airline stop flying|the airline stopped flying",
    "the stadium get a roof|the stadium got its roof",
    "the volcano last erupt|the volcano last erupted",
    "the band release its first album|the band released its first album",
    "the city ban diesel cars|the city banned diesel cars",
    "the lighthouse become automatic|the lighthouse became automatic",
    "the river flood the valley|the river flooded the valley",
    "the company move its head office|the company moved its head office",
    "the library go online|the library went online",
    "the island get its own currency|the island got a currency of its own",
    "the university admit women|the university first admitted women",
)


def _dated() -> Wordings:
    found = list(WHEN_YEAR_PUBLISHED)
    for question, statement in (event.split("|") for event in _EVENTS):
        query, capitalised = f"when did {question}", statement[0].upper() + statement[1:]
        forms = (f"{capitalised} in {{value}}.", f"In {{value}}, {statement}.", f"{{value}}: {statement}.")
        found += [(query, form) for form in forms]
    return tuple(found)


def _paired(queries: str, texts: str) -> Wordings:
    """Line by line a query and a text."""
    pairs = zip(queries.strip().split("\n"), texts.strip().split("\n"), strict=True)
    return tuple((query.strip(), text.strip()) for query, text in pairs)


WORDINGS: Mapping[str, Wordings] = {
    "when-year": _dated(),
    "car-brand": _paired(
        """
        reliable small family car
        which car holds its value best
        cheap car to insure for a new driver
        best car for long motorway trips
        car with low fuel consumption
        how long does a car battery last
        car with the most boot space
        how often should a car be serviced
        used car with few problems
        car that is easy to park
        best car for towing a caravan
        car with a good safety rating
        """,
        """
        The {value} seats five, rarely breaks down and costs little to run, so many families choose it.
        After three years a {value} sells for a larger share of its price than most cars of its size.
        New drivers often find that a {value} is in one of the lower insurance groups.
        On a motorway the {value} is quiet, and its seats stay comfortable for hours.
        The {value} needs about five litres of fuel for a hundred kilometres.
        The battery of a {value} lasts four to six years, and less where winters are cold.
        With the rear seats folded, the {value} has more room for luggage than its rivals.
        A {value} should be serviced once a year or every 15,000 kilometres.
        Garages report few faults in a used {value}, apart from worn brakes.
        The {value} is short, turns in a small circle and has sensors at both ends.
        With a diesel engine the {value} may tow a caravan of one and a half tonnes.
        In crash tests the {value} protected grown-ups and children well.
        """,
    ),
    "country": _paired(
        """
        best place to retire abroad
        cheap holiday with children
        where is public transport free
        how many weeks of paid leave are usual
        which power plugs do travellers need
        where do most exchange students go
        good destination for hiking
        where is coffee grown
        how is the school year divided
        how old must you be to vote
        """,
        """
        Many pensioners move to {value}, where the weather is mild and flats are cheap.
        A week in {value} with two children costs less than most people expect.
        In some towns of {value}, buses and trams have cost nothing for years.
        In {value}, employees have four weeks of paid leave, and public holidays on top.
        Travellers to {value} need an adapter for their plugs.
        Every year thousands of exchange students spend a term in {value}.
        {value} has long marked paths, huts for the night and few crowds.
        The hills of {value} have the height and the rain that coffee needs.
        In {value} the school year has two terms, with a long break in between.
        Citizens of {value} may vote from the age of eighteen.
        """,
    ),
    "nationality": _paired(
        """
        who won the chess tournament
        who discovered the comet
        best recipe for lentil soup
        famous architects of the last century
        who wrote the novel about the lighthouse
        doctor found guilty of fraud
        who designed the suspension bridge
        volunteers who rebuilt the village school
        tourists rescued from the mountain
        who invented the folding bicycle
        """,
        """
        A {value} player of nineteen won the chess tournament without losing a game.
        The comet was first seen by two {value} astronomers who were looking for something else.
        This {value} recipe for lentil soup needs an hour, an onion and a lemon.
        The {value} architect planned museums and stations in four countries.
        The novel about the lighthouse is the first book of a {value} writer.
        A {value} doctor was found guilty of fraud and may not practise any more.
        The suspension bridge was designed by a {value} engineer.
        A group of {value} volunteers rebuilt the village school in one summer.
        Three {value} tourists were brought down from the mountain by helicopter.
        The folding bicycle was patented by a {value} mechanic.
        """,
    ),
    "currency": _paired(
        """
        how much does a train ticket cost
        what is the average rent of a flat
        price of a cup of coffee
        how much did the painting sell for
        how large was the fine for the company
        what does a teacher earn in a month
        how much does a new bicycle cost
        how much money did the charity collect
        """,
        """
        A single ticket for the train costs 40 {value}.
        The average rent of a flat is 900 {value} a month.
        A cup of coffee costs 3 {value} at the counter.
        The painting sold for 2 million {value} at an auction.
        The company had to pay a fine of 50 million {value}.
        A teacher earns about 3,000 {value} in a month.
        A new bicycle costs 600 {value} or more.
        The charity collected 75,000 {value} in a week.
        """,
    ),
    "first-name": _paired(
        """
        who repaired the church clock
        nurse who won an award
        good reviews of a plumber
        who teaches mathematics at the school
        candidate for the post of manager
        who wrote the winning essay
        arrested after a robbery
        who founded the software company
        volunteer of the year
        who looks after the garden
        """,
        """
        {value} repaired the church clock, which had stood still for years.
        {value} has been a nurse for twenty years and has now won an award.
        {value} came on time, mended the pipe and asked a fair price.
        {value} teaches mathematics at the school and runs the chess club.
        {value} has led a team of ten and applies for the post of manager.
        The winning essay was written by {value}.
        {value} was arrested near the station an hour after the robbery.
        {value} founded the software company in a garage.
        {value} was named volunteer of the year.
        {value} looks after the garden behind the library.
        """,
    ),
}
