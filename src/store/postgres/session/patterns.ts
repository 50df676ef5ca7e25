/** Filter patterns (patterns/filter-pattern.ts) in statements. */
import { likePattern } from '../../../patterns/filter-pattern.ts'
import { storableText } from './arrays.ts'

/** Condition that a text matches a pattern. The collation "C" folds letters of ASCII only, whatever the locale of the database. */
export const matches = (text: string, parameter: string): string => `${text} ilike ${parameter} collate "C"`

/** The parameter for a filter pattern. */
export const patternParameter = (pattern: string): string => likePattern(storableText(pattern))

/** Condition for an address that earlier versions may have stored in another form than the normal one: in quotes, with misplaced dots or a second `@`. */
export const isOdd = (address: string): string => String.raw`${address} ~ '^"|^\.|\.\.|\.@|@.*@'`
/** Local parts that need no quotes (mail/address.ts). */
const DOT_ATOM = String.raw`'^[^[:cntrl:] "(),.:;<>@[\\\]]+(\.[^[:cntrl:] "(),.:;<>@[\\\]]+)*@[^@]*$'`

/** The normal form of an address (normalizeAddress of mail/address.ts) as an expression. */
export function normalForm(address: string): string {
  const plain = String.raw`regexp_replace(regexp_replace(${address}, '^"(.*)"(@[^"@]*)$', '\1\2'), '\\(.)', '\1', 'g')`
  return String.raw`(case when ${address} !~ '^"' then regexp_replace(${address}, '^(.*)(@[^@]*)$', '"\1"\2')
    when ${plain} ~ ${DOT_ATOM} then ${plain} else regexp_replace(${address}, '(\\["\\])|\\(.)', '\1\2', 'g') end)`
}
