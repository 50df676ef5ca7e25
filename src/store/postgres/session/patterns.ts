/** Filter patterns (patterns/filter-pattern.ts) in statements. */
import { likePattern } from '../../../patterns/filter-pattern.ts'
import { storableText } from './arrays.ts'

/** Condition that a text matches a pattern. The collation "C" folds letters of ASCII only, whatever the locale of the database. */
export const matches = (text: string, parameter: string): string => `${text} ilike ${parameter} collate "C"`

/** The parameter for a filter pattern. */
export const patternParameter = (pattern: string): string => likePattern(storableText(pattern))

/** An address that earlier versions may have stored in another form than the normal one: in quotes, with misplaced dots or a second `@`. */
const IS_ODD = String.raw`'^"|^\.|\.\.|\.@|@.*@'`
/** Local parts that need no quotes (mail/address.ts). */
const DOT_ATOM = String.raw`'^[^[:cntrl:] "(),.:;<>@[\\\]]+(\.[^[:cntrl:] "(),.:;<>@[\\\]]+)*@[^@]*$'`

/** The normal form of an address (normalizeAddress of mail/address.ts) as an expression. */
function normalForm(address: string): string {
  const plain = String.raw`regexp_replace(regexp_replace(${address}, '^"(.*)"(@[^"@]*)$', '\1\2'), '\\(.)', '\1', 'g')`
  return String.raw`case when ${address} !~ '^"' then regexp_replace(${address}, '^(.*)(@[^@]*)$', '"\1"\2')
    when ${plain} ~ ${DOT_ATOM} then ${plain} else regexp_replace(${address}, '(\\["\\])|\\(.)', '\1\2', 'g') end`
}

/** Condition that an address, or its normal form, matches a pattern. */
export const matchesAddress = (address: string, parameter: string): string =>
  `(${matches(address, parameter)} or (${address} ~ ${IS_ODD} and ${matches(`(${normalForm(address)})`, parameter)}))`
