/** Writes queue files as Postfix does. */

/** A record: type letter, length in groups of seven bits, data. */
export function record(type: string, data: string | Buffer = ''): Buffer {
  const bytes = Buffer.from(data)
  const length: number[] = []
  let rest = bytes.length
  do {
    length.push((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0))
    rest >>= 7
  } while (rest > 0)
  return Buffer.concat([Buffer.from(type, 'latin1'), Buffer.from(length), bytes])
}

export interface FileParts {
  /** Records before the content, without size and time. */
  readonly envelope?: readonly Buffer[]
  readonly content?: readonly Buffer[]
  readonly extracted?: readonly Buffer[]
  readonly arrival?: string
  readonly smtputf8?: number
}

const isRecipient = (one: Buffer): boolean => /^[RD]/.test(one.toString('latin1'))

/** A file of a queue, with a size record that is true. */
export function queueFile(parts: FileParts = {}): Buffer {
  const {
    envelope = [record('S', 'ann@a.test'), record('R', 'bob@b.test')],
    content = [record('N', 'Subject: hello'), record('N'), record('N', 'text')],
    extracted = [],
    arrival = '1795365167 442771',
    smtputf8 = 0,
  } = parts
  const before = Buffer.concat([record('T', arrival), ...envelope, record('M')])
  const body = Buffer.concat(content)
  const recipients = [...envelope, ...extracted].filter(isRecipient).length
  const sizes = [body.length, SIZE_LENGTH + before.length, recipients, 0, body.length, smtputf8]
    .map((n) => String(n).padStart(15))
    .join(' ')
  return Buffer.concat([record('C', sizes), before, body, record('X'), ...extracted, record('E')])
}

/** Length of a size record. */
const SIZE_LENGTH = 2 + 6 * 15 + 5
