/** Names of the actions of the audit log, as people read and write them: the words of the command, `token add`, `suppression add`. */

/** The name of an action. Records join its words with a blank or a hyphen. */
export const actionWords = (action: string): string => action.replaceAll('-', ' ')

/** A pattern of recorded actions from the words of an action, or from a pattern of them. */
export const actionPattern = (words: string): string => words.trim().replaceAll(/[ -]+/g, '*')
