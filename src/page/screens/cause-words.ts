/** A cause as words of a sentence. The parts that differ from message to message say nothing there: `·` becomes `…`, or nothing. Pure. */
import { clippedWords } from '../../presentation/text.ts'

/** In characters. */
const CAUSE_LENGTH = 90
/** `connect to mx.example[·]:25: Connection refused` */
const CONNECT = /^connect to ([^\s[:]*)\S*: (.+)$/s
/** Brackets with nothing but such parts, `[· ·]`. */
const EMPTY_BRACKETS = /\s?[[(<][·\s.:-]*·[·\s.:-]*[\])>]/g

const isVariable = (word: string | undefined): boolean => word?.includes('·') ?? false

/** The text without the variable parts at its end: `see · · - mx·` is `see …`. */
function withoutEnd(text: string): string {
  const words = text.split(' ')
  let end = words.length
  while (end > 1 && (isVariable(words[end - 1]) || ((words[end - 1] ?? '').length < 2 && isVariable(words[end - 2])))) end--
  return end === words.length ? text : `${words.slice(0, end).join(' ')} …`
}

const inWords = (text: string): string =>
  withoutEnd(text.replaceAll(EMPTY_BRACKETS, ''))
    .replaceAll('·', '…')
    .replaceAll(/…(?:\s*…)+/g, '…')
    .trim()

/** `421 4.7.28 unusual rate of mail`; `a connection to mx.example (Connection refused)` for a connection that failed. */
export function causeWords(cause: string): string {
  const [, host = '', why] = CONNECT.exec(cause) ?? []
  const words = why === undefined ? inWords(cause) : `a connection${host === '' || isVariable(host) ? '' : ` to ${host}`} (${inWords(why)})`
  return clippedWords(words, CAUSE_LENGTH)
}
