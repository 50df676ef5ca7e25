/** Patterns of filters, as operators write them: `*` matches any text, and every other character itself, in upper or lower case. */

/** Form of the pattern of an enhanced status code (RFC 3463): a code, or one with wildcards. */
export const STATUS_PATTERN = /^(?:[245]\.\d{1,3}\.\d{1,3}|[\d.]*\*[\d.*]*)$/

/** Escapes text for LIKE of SQL, with a backslash. */
export const likeText = (text: string): string => text.replaceAll(/[\\%_]/g, '\\$&')

/** Converts a filter pattern to a LIKE pattern. */
export const likePattern = (text: string): string => likeText(text).replaceAll('*', '%')

/** Whether a text matches a filter pattern, case-insensitively. `*` is the only wildcard. */
export function matchesPattern(pattern: string, text: string): boolean {
  const parts = pattern.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${parts.join('.*')}$`, 'is').test(text)
}
