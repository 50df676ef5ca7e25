/**
 * On which line of a TOML file each key stands, so that a problem can be shown where it is. The parser has already
 * accepted the text; this only walks over it, and knows just enough of the grammar not to be fooled by strings,
 * comments and lists that go over several lines.
 */

import { parse } from 'smol-toml'

/** A key with the tables it lies in, as one string. */
export const keyPath = (...parts: readonly string[]): string => JSON.stringify(parts)

class Walker {
  readonly lines = new Map<string, number>()
  readonly #text: string
  #at = 0
  #line = 1
  #table: readonly string[] = []

  constructor(text: string) {
    this.#text = text
  }

  walk(): void {
    for (this.#skipBlank(); this.#at < this.#text.length; this.#skipBlank()) {
      const heading = this.#peek() === '['
      while (this.#peek() === '[') this.#step()
      const key = this.#key()
      if (heading) this.#table = key
      const path = keyPath(...(heading ? key : [...this.#table, ...key]))
      if (!this.lines.has(path)) this.lines.set(path, this.#line)
      this.#skipValue()
    }
  }

  #peek(length = 1): string {
    return this.#text.slice(this.#at, this.#at + length)
  }

  #step(): void {
    if (this.#text[this.#at] === '\n') this.#line++
    this.#at++
  }

  #skipBlank(): void {
    while (/^[\s#]/.test(this.#peek())) {
      if (this.#peek() === '#') this.#skipComment()
      else this.#step()
    }
  }

  #skipComment(): void {
    while (this.#at < this.#text.length && this.#peek() !== '\n') this.#step()
  }

  /** `a."b.c".d` up to the equals sign or the closing bracket. */
  #key(): readonly string[] {
    const parts: string[] = []
    let part = ''
    for (; this.#at < this.#text.length && !/^[=\]\n]/.test(this.#peek());) {
      const letter = this.#peek()
      if (letter === '"' || letter === "'") {
        const from = this.#at
        this.#skipString()
        const quoted = this.#text.slice(from, this.#at)
        part += Object.keys(parse(`${quoted} = 0`))[0] ?? ''
        continue
      }
      if (letter === '.') part = (parts.push(part), '')
      else if (!/\s/.test(letter)) part += letter
      this.#step()
    }
    return [...parts, part]
  }

  /** To the end of the statement: the first line end that lies in no string, list or inline table. */
  #skipValue(): void {
    let depth = 0
    while (this.#at < this.#text.length && !(depth <= 0 && this.#peek() === '\n')) {
      const letter = this.#peek()
      if (letter === '"' || letter === "'") this.#skipString()
      else if (letter === '#') this.#skipComment()
      else {
        if (letter === '[' || letter === '{') depth++
        if (letter === ']' || letter === '}') depth--
        this.#step()
      }
    }
  }

  #skipString(): void {
    const quote = this.#peek()
    const mark = this.#peek(3) === quote.repeat(3) ? quote.repeat(3) : quote
    for (let i = 0; i < mark.length; i++) this.#step()
    while (this.#at < this.#text.length && this.#peek(mark.length) !== mark) {
      if (quote === '"' && this.#peek() === '\\') this.#step()
      this.#step()
    }
    for (let i = 0; i < mark.length; i++) this.#step()
  }
}

/** Line numbers from 1 by key path. */
export function keyLines(toml: string): ReadonlyMap<string, number> {
  const walker = new Walker(toml)
  walker.walk()
  return walker.lines
}
