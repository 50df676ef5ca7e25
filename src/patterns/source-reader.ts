/** Reads the text of a pattern from left to right. Pure. */
export class SourceReader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  get hasMore(): boolean {
    return this.#at < this.#text.length
  }

  /** The next character; empty at the end. */
  get next(): string {
    return this.#text.charAt(this.#at)
  }

  /** Takes the next character; empty at the end. */
  take(): string {
    return this.#text.charAt(this.#at++)
  }

  /** Takes the text if it comes next. */
  takes(text: string): boolean {
    if (!this.#text.startsWith(text, this.#at)) return false
    this.#at += text.length
    return true
  }

  /** Takes what a sticky expression matches here; null when it does not match. */
  match(expression: RegExp): RegExpExecArray | null {
    expression.lastIndex = this.#at
    const found = expression.exec(this.#text)
    if (found !== null) this.#at += found[0].length
    return found
  }
}
