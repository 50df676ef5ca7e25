/** Follows the content of a recorded message to its final dot. It tells its size and the names of its header fields, and keeps its words for masks. */
import { byteSize } from '../../presentation/text.ts'

const END = Buffer.from('\r\n.\r\n')
/** Octets of a content whose words are masked in replies. */
const MOST_READ = 1_000_000

export class ContentTap {
  #size = 0
  #isWhole = false
  /** The CRLF of DATA precedes the content. */
  #tail: Buffer = Buffer.from('\r\n')
  #read: Buffer[] = []

  get isWhole(): boolean {
    return this.#isWhole
  }

  /** Number of octets of `bytes` that belong to the content, with its final dot. */
  read(bytes: Buffer): number {
    const seam = Buffer.concat([this.#tail, bytes])
    const end = seam.indexOf(END)
    const used = end < 0 ? bytes.length : end + END.length - this.#tail.length
    this.#isWhole = end >= 0
    if (this.#size < MOST_READ) this.#read.push(bytes.subarray(0, used))
    this.#size += used
    this.#tail = seam.subarray(Math.max(0, seam.length - END.length + 1))
    return used
  }

  /** The beginning of the content. */
  text(): string {
    return Buffer.concat(this.#read).toString('utf8')
  }

  /** `1.2 KB with From, To, Subject`: the size, and the names of header fields. */
  inWords(): string {
    const header = this.text().split(/\r?\n\r?\n/, 1)[0] ?? ''
    const names = [...header.matchAll(/^([!-9;-~]+):/gm)].map(([, name = '']) => name)
    const size = byteSize(Math.max(0, this.#size - 3))
    return names.length === 0 ? size : `${size} with ${[...new Set(names)].join(', ')}`
  }
}
