/** Parses the JSON of requests, with a limit for the number of values. */
import { grouped } from '../presentation/text.ts'
import { errorMessage } from '../system/caught-error.ts'
import { HTTP_PROBLEMS, Problem } from './problem-details.ts'

/** Maximum number of values in a body, elements and members: more take seconds to parse and to compare with a shape. */
export const MOST_VALUES = 150_000

const [QUOTE, BACKSLASH, COMMA, BRACKET, BRACE] = Buffer.from('"\\,[{')

/** True when a text has at most so many values: each but the outermost follows a comma or the begin of an array or object. */
function hasAtMost(most: number, bytes: Uint8Array): boolean {
  // A value takes two bytes.
  if (bytes.length <= most) return true
  let [values, isInString] = [0, false]
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]
    if (byte === QUOTE) isInString = !isInString
    else if (isInString) at += byte === BACKSLASH ? 1 : 0
    else if ((byte === COMMA || byte === BRACKET || byte === BRACE) && ++values > most) return false
  }
  return true
}

/** The value of a JSON body. Throws Problem for another one, and for one with more values than `most`. */
export function parseJson(bytes: Buffer, most: number): unknown {
  if (!hasAtMost(most, bytes)) throw new Problem(HTTP_PROBLEMS.tooLarge, `request body too large: the limit is ${grouped(most)} values`)
  try {
    // Invalid UTF-8 is refused: replaced characters would name other mail than the client meant.
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (cause) {
    throw new Problem(HTTP_PROBLEMS.malformed, `request refused: the body is not JSON: ${errorMessage(cause)}`, { cause })
  }
}
