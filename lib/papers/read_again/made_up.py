"""Six dispatches with invented companies, to show: those of Reuters that the shipped run has learned from may not be
printed."""

from lib.data.documents import Document, to_document

_TEXTS = """
NORBALT MINING TO BUY REST OF TESSERA COPPER
Norbalt Mining Corp said it agreed to acquire the shares of Tessera Copper Co that it
does not already own for about 42 mln dlrs in cash. Norbalt, which holds 18 pct of
Tessera, said it will pay 11 dlrs a share. The boards of both companies have approved
the agreement. Tessera operates two copper mines in Nevada.

CENTRAL BANK OF VELMORA CUTS DISCOUNT RATE
The central bank of Velmora cut its discount rate to 6.5 pct from seven pct, effective
tomorrow, the bank said in a statement. It was the second cut this year. Bankers said
the move had been expected after a similar step in West Germany last week and was meant
to slow the rise of the currency against the dollar.

KESTREL PETROLEUM RAISES CRUDE OIL PRICES
Kestrel Petroleum Inc said it raised the price it pays for crude oil by 50 cts a barrel,
effective today. The increase brings its price for West Texas Intermediate, the
benchmark grade, to 17.50 dlrs a barrel. The company last changed its prices on
February 12.

RAIN DELAYS IVORY COAST COCOA HARVEST
Heavy rain in the main growing regions of the Ivory Coast has delayed the cocoa harvest
by at least two weeks, traders said. Arrivals at the port of Abidjan reached 12,000
tonnes last week, compared with 19,000 tonnes in the same week a year ago. The traders
said that the quality of the beans may suffer if the rain goes on.

OSTERVIK AIRWAYS PILOTS VOTE TO STRIKE
Pilots of Ostervik Airways voted to strike from Monday if talks on a new contract fail,
a spokesman for their union said. The airline has asked its 1,400 pilots to accept a
wage cut of eight pct. It reported a loss of 31 mln dlrs for the first quarter. A
spokeswoman for Ostervik said that the company hoped to reach an agreement before the
deadline.

EC MINISTERS FAIL TO AGREE ON GRAIN PRICES
Agriculture ministers of the European Community failed to agree on new prices for grain
after three days of talks, diplomats said. The ministers will meet again on May 18. The
dispute is over a proposal by the EC Commission to cut the price of wheat by two pct,
which West Germany and Ireland oppose."""


def made_up_dispatches() -> list[Document]:
    """Dispatches with their headlines, which are their titles too."""
    parts = [part.partition("\n") for part in _TEXTS.strip().split("\n\n")]
    records = [{"summary": head, "document": " ".join(text.split()), "title": head} for head, _, text in parts]
    return [to_document({"id": f"dispatch {n}", **record}) for n, record in enumerate(records, 1)]
