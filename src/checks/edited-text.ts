/** Bytes of the text that an action inserts. */

const CRLF = Buffer.from('\r\n')

/** A header field with its line end. A line that continues the field begins with a blank (Postfix cleanup_out_header). */
export const fieldBytes = (text: string): Buffer =>
  Buffer.from(`${text.replaceAll(/\r?\n(?![ \t])/g, '\n\t').replaceAll(/\r?\n/g, '\r\n')}\r\n`, 'latin1')

/** A body line; with `isOpen` a piece of a line that continues. */
export const lineBytes = (text: string, isOpen = false): Buffer => {
  const bytes = Buffer.from(text.replaceAll(/[\r\n]/g, ' '), 'latin1')
  return isOpen ? bytes : Buffer.concat([bytes, CRLF])
}
