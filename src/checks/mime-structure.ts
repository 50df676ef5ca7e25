/**
 * Follows the MIME structure of a message (RFC 2046), as far as it decides which lines are header fields: the fields of body parts
 * and of attached messages. Strings have one character per octet. The input is not trusted.
 */

/** Maximum number of nested boundaries (Postfix mime_nesting_limit). */
const NESTING_LIMIT = 100
/** Maximum length of a boundary that is compared (Postfix mime_boundary_length_limit). */
const BOUNDARY_LIMIT = 2048

type Media = 'message' | 'multipart' | 'other'

interface Boundary {
  readonly text: string
  /** Media of a part without a Content-Type. */
  readonly media: Media
}

export class MimeStructure {
  readonly #boundaries: Boundary[] = []
  #media: Media = 'other'

  /** True when a later line may begin a header. */
  get isNested(): boolean {
    return this.#boundaries.length > 0
  }

  field(field: string): void {
    const value = /^content-type[ \t]*:([^]*)$/i.exec(field)?.[1]
    if (value === undefined) return
    const [, type = '', subtype = ''] = /^\s*(?:\([^)]*\)\s*)*([^\s/;"]+)(?:\s*\/\s*([^\s/;"]+))?/.exec(value) ?? []
    this.#media = mediaOf(type.toLowerCase(), subtype.toLowerCase())
    if (this.#media !== 'multipart') return
    const media = subtype.toLowerCase() === 'digest' ? 'message' : 'other'
    for (const text of boundariesOf(value)) {
      if (this.#boundaries.length <= NESTING_LIMIT) this.#boundaries.push({ text: text.slice(0, BOUNDARY_LIMIT), media })
    }
  }

  /** Ends a header. Returns true when the body begins with the header of an attached message. */
  endHeader(): boolean {
    const isMessage = this.#media === 'message'
    this.#media = 'other'
    return isMessage
  }

  /** Reads the start of a body line: a boundary that begins or ends a body part, or another line. */
  line(line: string): 'begins' | 'ends' | 'other' {
    if (!line.startsWith('--')) return 'other'
    const at = this.#boundaries.findLastIndex(({ text }) => line.startsWith(text, 2))
    const boundary = this.#boundaries[at]
    if (boundary === undefined) return 'other'
    const isLast = line.startsWith('--', 2 + boundary.text.length)
    this.#boundaries.length = isLast ? at : at + 1
    this.#media = isLast ? 'other' : boundary.media
    return isLast ? 'ends' : 'begins'
  }
}

function mediaOf(type: string, subtype: string): Media {
  if (type === 'message') return subtype === 'rfc822' || subtype === 'global' ? 'message' : 'other'
  return type === 'multipart' ? 'multipart' : 'other'
}

const BOUNDARY = /;\s*boundary\s*=\s*(?:"((?:[^"\\]|\\.)*)"?|([^\s;()<>@,:\\"/[\]?=]+))/gis

const boundariesOf = (value: string): readonly string[] =>
  [...value.matchAll(BOUNDARY)].map(([, quoted, plain = '']) => quoted?.replace(/\\(.)/gs, '$1') ?? plain)
