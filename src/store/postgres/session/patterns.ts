/** Filter patterns (patterns/filter-pattern.ts) in statements. */
import { likePattern } from '../../../patterns/filter-pattern.ts'
import { storableText } from './arrays.ts'

/** Condition that a text matches a pattern. The collation "C" folds letters of ASCII only, whatever the locale of the database. */
export const matches = (text: string, parameter: string): string => `${text} ilike ${parameter} collate "C"`

/** The parameter for a filter pattern. */
export const patternParameter = (pattern: string): string => likePattern(storableText(pattern))
