/** Contents that hide a second message behind bytes that some servers accept as the end of the first. */

const ENDS = { nothing: '', LF: '\n', CR: '\r', CRLF: '\r\n', CRCRLF: '\r\r\n', NULCRLF: '\0\r\n' }

/** Bytes before and after the dot, except for the real end of data. */
export const SMUGGLING_MARKS = Object.entries(ENDS)
  .flatMap(([before, first]) => Object.entries(ENDS).map(([after, second]) => ({ before, after, mark: `${first}.${second}` })))
  .filter(({ mark }) => !mark.includes('\r\n.\r\n'))

const SMUGGLED = 'MAIL FROM:<evil@us.example>\r\nRCPT TO:<boss@far.example>\r\nDATA\r\n\r\nsmuggled'

export const smugglingOf = (mark: string): Buffer => Buffer.from(`\r\nhello${mark}${SMUGGLED}\r\n.\r\n`, 'latin1')
