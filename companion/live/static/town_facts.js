/* Snippets about towns and their facts: `companion.tasks.towns`, and what a summary gets right: `companion.tasks.towns.kind_of`. */

/** Words, numbers and marks that a reader typed; no symbol of the vocabulary, such as [EOS], can be typed. */
const typedSpans = text => wordSpans(lowered(clean(text))), typedWords = text => typedSpans(text).map(([word]) => word);

/** The same as the reader writes them, each with the space before it, but for the full stops and commas of the task. */
const shownWords = text => surfaces(clean(text), typedSpans(text)).map(shown => /^ [.,]$/.test(shown) ? shown.trim() : shown);

class TownFacts {
  /** towns: names; values: of each fact; places: where its value stands in a summary. */
  constructor({ towns, values, places }) {
    Object.assign(this, { places, towns: new Set(towns), factOf: new Map() });
    values.forEach((words, fact) => { for (const word of words) this.factOf.set(word, fact); });
  }

  /** What paragraphs (lists of words) say: {town, fact, value}. A value is said of the town that its
   *  paragraph named last before it; without one it is said of none. */
  mentions(paragraphs) {
    return paragraphs.flatMap(words => {
      let town = null;
      return words.flatMap(word => {
        if (this.towns.has(word)) town = word;
        const fact = this.factOf.get(word);
        return fact === undefined || !town ? [] : [{ town, fact, value: word }];
      });
    });
  }

  /** The facts of a summary (words) about a town, by what paragraphs mention: of each {word, kind, said, most, other}. said:
   *  how often the word is said of this town, most: how often another value is, other: another town of which the word is said.
   *  kind: "right" (said > most), "tied", "minority's", "other town's" or "nowhere". */
  judged(summary, town, mentions) {
    return this.places.map((place, fact) => {
      const word = summary[place] ?? "", own = mentions.filter(m => m.fact === fact && m.town === town).map(m => m.value);
      const count = value => own.filter(other => other === value).length;
      const said = count(word), most = Math.max(0, ...own.filter(value => value !== word).map(count));
      const other = mentions.find(m => m.fact === fact && m.town !== town && m.value === word)?.town;
      const among = said > most ? "right" : said === most ? "tied" : "minority's";
      return { word, said, most, other, kind: said ? among : other ? "other town's" : "nowhere" };
    });
  }
}
