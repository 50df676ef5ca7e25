/**
 * Digest of a message in the form in which it is sent: the header fields, and the hash of the body. Lines over
 * smtp_line_length_limit are split as ContentEncoding splits them, so that the digest stays valid when the message is sent.
 */
import { ContentEncoding } from '../mail/content-encoding.ts'
import { headerLength, rawFieldsOf, type RawField } from '../mail/headers.ts'
import { BodyHash } from './body-hash.ts'

export class MessageDigest {
  readonly #lineLimit: number
  readonly #header: Uint8Array[] = []
  readonly #encoding: ContentEncoding
  readonly #body = new BodyHash()

  /** `lineLimit` is smtp_line_length_limit; 0 for no limit. */
  constructor(lineLimit: number) {
    this.#lineLimit = lineLimit
    this.#encoding = new ContentEncoding(lineLimit, 'BDAT')
  }

  /** Adds a part of the header, which must not change before `fields` is called. */
  header(piece: Uint8Array): void {
    this.#header.push(piece)
  }

  /** Adds a part of the body, without the empty line before it. */
  body(piece: Uint8Array): void {
    this.#body.write(this.#encoding.encode(piece))
  }

  /** The fields as they are sent. */
  fields(): readonly RawField[] {
    return sentFields(this.#header, this.#lineLimit)
  }

  /** Hash of the body in base64. Called once, after the last part. */
  bodyHash(): string {
    this.#body.write(Buffer.from(this.#encoding.lineEnd()))
    return this.#body.digest()
  }
}

export function sentFields(header: readonly Uint8Array[], lineLimit: number): readonly RawField[] {
  const encoding = new ContentEncoding(lineLimit, 'BDAT')
  const encoded = header.map((piece) => encoding.encode(piece))
  return rawFieldsOf(Buffer.concat([...encoded, Buffer.from(encoding.lineEnd())]))
}

/** Header and body of a complete content with CRLF line ends, without the empty line between them. */
export function splitContent(content: Uint8Array): { readonly header: Uint8Array; readonly body: Uint8Array } {
  const at = headerLength(content)
  const isSeparated = content[at] === 0x0d && content[at + 1] === 0x0a
  return { header: content.subarray(0, at), body: content.subarray(isSeparated ? at + 2 : at) }
}
