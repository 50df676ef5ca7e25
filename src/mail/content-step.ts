/**
 * The steps that change a content, in the order in which they take it: when mail arrives (header_checks and body_checks, editing of the
 * header, fields that are missing, digest for DKIM) and when it is sent (smtp_header_checks, smtp_generic_maps, signatures).
 */

/** A promise when the caller must wait before the next call. */
export type Taken = Promise<void> | undefined

/** Takes a content as it was received or stored, divided anywhere, with CRLF line ends. */
export interface ContentEntry {
  write(bytes: Buffer): Taken
  end(): Taken
}

/**
 * The part of a content that steps may change: the header, or header and body. While mail is sent, the header only: a signature has the hash of
 * the body and is sent before the body is read, so that it has the hash of the stored one.
 */
export type Change = 'header' | 'body'

/** Takes what the step before leaves of a content. The calls come in this order, except that `insert` may stand among those of `header`. */
export interface ContentStep<C extends Change = Change> {
  /** The part that the steps before this one may change. A step that changes the body is made over a `ContentStep<'body'>` only. */
  readonly permits: C
  /** Bytes of the header, divided anywhere. */
  header(bytes: Buffer): void
  /** A complete field that the steps after this one leave as it is. */
  insert(field: Buffer): void
  /** The empty line after the header; without bytes when the content ends with its header. */
  beginBody(line: Buffer): Taken
  body(bytes: Buffer): Taken
  end(): Taken
}

/** Does `next` when `first` has ended. */
export const inTurn = (first: Taken, next: () => Taken): Taken => (first === undefined ? next() : first.then(next))
