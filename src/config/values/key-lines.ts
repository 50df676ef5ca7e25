/**
 * Line numbers of the keys of a TOML file, for the positions of problems. The text is valid TOML, so the walker handles only
 * strings, comments, and lists and inline tables that span several lines.
 */

import { parse } from 'smol-toml'

/** Encodes a key with its tables as one string. */
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
      const isElement = this.#peek(2) === '[['
      while (this.#peek() === '[') this.#step()
      const key = this.#key()
      if (heading) this.#table = isElement ? this.#element(key) : key
      const path = keyPath(...(heading ? key : [...this.#table, ...key]))
      if (!this.lines.has(path)) this.lines.set(path, this.#line)
      this.#skipValue()
    }
  }

  /** The next element of a list of tables. The last part of its key is its number. */
  #element(key: readonly string[]): readonly string[] {
    for (let n = 0; ; n++) {
      const element = [...key, String(n)]
      if (this.lines.has(keyPath(...element))) continue
      this.lines.set(keyPath(...element), this.#line)
      return element
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

  /** Reads a key such as `a."b.c".d`, up to the equals sign or the closing bracket. */
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

  /** Skips to the end of the statement: the first line end outside strings, lists and inline tables. */
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

/** Line numbers, counted from 1, by key path. */
export function keyLines(toml: string): ReadonlyMap<string, number> {
  const walker = new Walker(toml)
  walker.walk()
  return walker.lines
}
