/* Symbols and words by their ids, as `lib.data.vocabulary` has them. */

const PAD = 0, UNK = 1, BOS = 2, EOS = 3;

/** The vocabulary with copy ids (`lib.data.vocabulary.Vocabulary`). */
class Vocabulary {
  constructor(words) {
    this.words = words;
    this.ids = new Map(words.map((word, id) => [word, id]));
  }

  /** Extended ids of rows of words, and the words that the vocabulary does not have, in the order of their ids. */
  encode(rows) {
    const unknown = new Map(), size = this.words.length;
    const id = word => {
      const known = this.ids.get(word) ?? unknown.get(word);
      if (known !== undefined) return known;
      unknown.set(word, size + unknown.size);
      return size + unknown.size - 1;
    };
    return { sentences: rows.map(words => words.map(id)), unknown: [...unknown.keys()] };
  }

  word(id, unknown) { return id < this.words.length ? this.words[id] : unknown[id - this.words.length]; }
}
