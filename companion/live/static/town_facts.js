/* Snippets about towns and their facts: `companion.tasks.towns`, and what a summary gets right: `companion.tasks.towns.kind_of`. */

/** Words, numbers and marks that a reader typed; no symbol of the vocabulary, such as [EOS], can be typed. */
const typedWords = text => tokensOf(text.toLowerCase());

class TownFacts {
  /** towns: names; values: of each fact; places: where its value stands in a summary. */
  constructor({ towns, values, places }) {
    Object.assign(this, { places, towns: new Set(towns), factOf: new Map() });
    values.forEach((words, fact) => { for (const word of words) this.factOf.set(word, fact); });
  }

  /** What paragraphs (lists of words) say: {paragraph, town, fact, value}. A value is said of the town that its
   *  paragraph named last before it; without one it is said of none. */
  mentions(paragraphs) {
    return paragraphs.flatMap((words, paragraph) => {
      let town = null;
      return words.flatMap(word => {
        if (this.towns.has(word)) town = word;
        const fact = this.factOf.get(word);
        return fact === undefined || !town ? [] : [{ paragraph, town, fact, value: word }];
      });
    });
  }

  /** The facts of a summary (words) about a town, by what paragraphs mention: of each {fact, word, kind, said}. `said`
   *  has the places of the paragraphs that say the word of this town. kind: "right" (no value is said of the town more
   *  often), "tied" (another one as often), "minority's", "other town's" or "nowhere". */
  judged(summary, town, mentions) {
    return this.places.map((place, fact) => {
      const word = summary[place] ?? "", of = value => mentions.filter(m => m.fact === fact && m.value === value);
      const said = of(word).filter(m => m.town === town);
      const rivals = new Set(mentions.filter(m => m.fact === fact && m.town === town && m.value !== word).map(m => m.value));
      const most = Math.max(0, ...[...rivals].map(value => of(value).filter(m => m.town === town).length));
      const own = said.length > most ? "right" : said.length === most ? "tied" : "minority's";
      const others = of(word).filter(m => m.town !== town).map(m => m.town);
      const kind = said.length ? own : others.length ? "other town's" : "nowhere";
      return { fact, word, kind, said: said.map(m => m.paragraph), most, other: said.length ? null : others[0] ?? null };
    });
  }
}
