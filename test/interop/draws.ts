/** Seeded choices for generators of test inputs. */
import { seededRandom } from '../../src/system/random.ts'

export class Draws {
  /** The next number, from 0 up to but not including 1. */
  readonly next: () => number
  #drawn = 0

  /** `name` keeps the choices of two generators with the same seed apart. */
  constructor(seed: number, name: string) {
    const random = seededRandom(seed)
    this.next = () => random.draw(`${name} ${this.#drawn++}`)
  }

  /** Makes from `least` up to but not including `limit` items. */
  many<T>(least: number, limit: number, make: () => T): readonly T[] {
    return Array.from({ length: least + Math.floor(this.next() * (limit - least)) }, make)
  }

  of<T>(choices: readonly T[]): T {
    return choices[Math.floor(this.next() * choices.length)] as T
  }

  shuffled<T>(items: readonly T[]): readonly T[] {
    return items
      .map((item) => [this.next(), item] as const)
      .toSorted(([a], [b]) => a - b)
      .map(([, item]) => item)
  }
}
