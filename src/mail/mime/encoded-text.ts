/** Text of mail in any charset: bodies, and encoded words of header fields (RFC 2047). Strings of octets have one character per octet. */
import { asText } from './mime-reader.ts'

/** Decodes octets in a charset. Octets of an unknown charset are read as UTF-8, or as ISO 8859-1 when they are no UTF-8. */
export function decoded(octets: string, charset = ''): string {
  if (charset === '') return asText(octets)
  try {
    return new TextDecoder(charset).decode(Buffer.from(octets, 'latin1'))
  } catch {
    // RangeError: the charset is unknown.
    return asText(octets)
  }
}

/** Encoded words in one charset, or the text between words, whose charset is null. */
interface Piece {
  readonly charset: string | null
  readonly octets: string
}

const WORD = /=\?([\w.+-]+)(?:\*[\w-]*)?\?([bq])\?([^?\s]*)\?=/gi

const octetsOf = (encoding: string, text: string): string =>
  encoding.toLowerCase() === 'b'
    ? Buffer.from(text, 'base64').toString('latin1')
    : text.replaceAll('_', ' ').replaceAll(/=([0-9a-f]{2})/gi, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)))

/** Encoded words and the text between them; adjacent words of one charset are one piece, since a character may span them. */
function pieces(value: string): readonly Piece[] {
  const found: Piece[] = []
  let end = 0
  let isAdjacent = false
  for (const match of value.matchAll(WORD)) {
    const [whole, charset = '', encoding = '', text = ''] = match
    const between = value.slice(end, match.index)
    const octets = octetsOf(encoding, text)
    isAdjacent &&= between.trim() === ''
    if (!isAdjacent) found.push({ charset: null, octets: between })
    const former = found.at(-1)
    if (isAdjacent && former?.charset === charset.toLowerCase())
      found.splice(-1, 1, { charset: former.charset, octets: former.octets + octets })
    else found.push({ charset: charset.toLowerCase(), octets })
    end = match.index + whole.length
    isAdjacent = true
  }
  return [...found, { charset: null, octets: value.slice(end) }]
}

/** Decodes the encoded words of an unfolded field. */
export const decodedField = (value: string): string =>
  pieces(value)
    .map(({ octets, charset }) => (charset === null ? octets : decoded(octets, charset)))
    .join('')
