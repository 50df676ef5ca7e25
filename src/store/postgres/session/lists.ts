/**
 * Columns of many rows as one row with a list per column: numbers as bytes, texts with a separator between them. Rows take the client five
 * times as long, since it makes a string of each of their fields.
 */

/** Between texts, and in place of null. */
const SEPARATOR = '\x1e'
const NULL = '\x1d'

/** Expressions for the list of a column. Those for texts take no null, but for `nullableList`. */
export const bigintList = (column: string): string => `string_agg(int8send(${column}), '') as ${column}`
export const intList = (column: string): string => `string_agg(int4send(${column}), '') as ${column}`
export const booleanList = (column: string): string => `string_agg(boolsend(${column}), '') as ${column}`
export const textList = (column: string): string => `string_agg(${column}, E'\\x1e') as ${column}`
export const nullableList = (column: string): string =>
  `string_agg(coalesce(${column}, E'\\x1d'), E'\\x1e') as ${column}, count(${column})::int as ${column}_count`

/** Elements of lists of numbers. */
export const bigintAt = (list: Buffer, n: number): number => list.readInt32BE(8 * n) * 2 ** 32 + list.readUInt32BE(8 * n + 4)
export const intAt = (list: Buffer, n: number): number => list.readInt32BE(4 * n)
export const booleanAt = (list: Buffer, n: number): boolean => list[n] !== 0
export const bigintsIn = (list: Buffer): number => list.length / 8

/** The texts of a list of `count`; null when one of them has the separator. */
export function textsIn(list: string, count: number): readonly string[] | null {
  const texts = list.split(SEPARATOR)
  return texts.length === count ? texts : null
}

/** The texts of a list of `count`, of which `present` are not null; null when one of them has the separator, or is what stands for null. */
export function nullablesIn(list: string, count: number, present: number): readonly (string | null)[] | null {
  const texts: (string | null)[] = list.split(SEPARATOR)
  let found = texts.length
  for (const [n, text] of texts.entries())
    if (text === NULL) {
      texts[n] = null
      found--
    }
  return texts.length === count && found === present ? texts : null
}
