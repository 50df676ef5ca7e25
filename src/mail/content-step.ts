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

/** Takes what the step before leaves of a content. The calls come in this order, except that `insert` may stand among those of `header`. */
export interface ContentStep {
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
