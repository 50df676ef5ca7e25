/**
 * The pages of a database as of its last commit, read from the file and its write-ahead log without SQLite and without a
 * change to either. Nothing else may write them meanwhile.
 */
import { closeSync, fstatSync, openSync, readFileSync, readSync, statSync } from 'node:fs'
import { syncedFrames } from '../durability/synced-mark.ts'
import { isCopied, LOG_HEADER, readLog, type WriteAheadLog } from './write-ahead-log.ts'

/** Size of a page in a queue (database.ts). */
export const PAGE_SIZE = 8192

/** 'dfer' as SQLite's application_id. It identifies a deferd queue, also for file(1). */
export const APPLICATION_ID = 0x64666572

const MAGIC = 'SQLite format 3\0'

const NO_LOG = Buffer.alloc(0)

/** Pages of a file for each page that it has on disk, above which it is taken for one that was extended by a hole. */
const SPARSE = 128

/**
 * Number of pages of a file. Of a file that is almost only holes, those that the header counts, and at least as many as are on disk: to read all
 * pages of a hole of 1 TB takes an hour. File systems that compress store less than a file has, hence the wide margin.
 */
function filePages({ size, blocks }: { readonly size: number; readonly blocks: number }, inHeader: number): number {
  const all = Math.floor(size / PAGE_SIZE)
  const onDisk = Math.ceil((blocks * 512) / PAGE_SIZE)
  return all > SPARSE * Math.max(onDisk, 1_000) ? Math.min(all, Math.max(inHeader, onDisk)) : all
}

export class PageFile {
  readonly #fd: number
  readonly #log: Buffer
  readonly log: WriteAheadLog
  /** Number of pages of the database. */
  readonly count: number
  /** Number of pages that neither the file nor the log has, compared with the page count in the header or in the last commit. */
  readonly missing: number

  constructor(path: string, { withLog } = { withLog: true }) {
    this.#fd = openSync(path, 'r')
    const wal = `${path}-wal`
    const log = !withLog || statSync(wal, { throwIfNoEntry: false }) === undefined ? NO_LOG : readFileSync(wal)
    this.#log = isCopied(log, PAGE_SIZE, (page) => this.#inFile(page)) ? NO_LOG : log
    this.log = readLog(this.#log, PAGE_SIZE, this.#log.length < LOG_HEADER ? null : syncedFrames(path, this.#log.subarray(16, 24)))
    const facts = fstatSync(this.#fd)
    const first = this.page(1)
    const inHeader = first?.toString('latin1', 0, 16) === MAGIC ? first.readUInt32BE(28) : null
    const inFile = filePages(facts, inHeader ?? 0)
    const expected = this.log.pageCount ?? inHeader ?? inFile
    const inLog = Math.max(0, ...this.log.pages.keys())
    // A damaged header may have any page count.
    this.count = Math.max(inFile, inLog, Math.min(expected, 2 * Math.max(inFile, inLog)))
    this.missing = 0
    for (let page = inFile + 1; page <= expected && page <= this.count; page++) if (!this.log.pages.has(page)) this.missing++
    this.missing += Math.max(0, expected - this.count)
  }

  /** A page; undefined when it cannot be read. */
  page(number: number): Buffer | undefined {
    const at = this.log.pages.get(number)
    return at === undefined ? this.#inFile(number) : this.#log.subarray(at, at + PAGE_SIZE)
  }

  #inFile(number: number): Buffer | undefined {
    const page = Buffer.alloc(PAGE_SIZE)
    try {
      return readSync(this.#fd, page, 0, PAGE_SIZE, (number - 1) * PAGE_SIZE) === PAGE_SIZE ? page : undefined
    } catch {
      // The disk cannot read this page (EIO): it is reported like a damaged one.
      return undefined
    }
  }

  /** Whether the newest version of a page is readable, as far as that is known. */
  isCurrent(number: number): boolean {
    return !this.log.lost.has(number) && !this.log.lostAny
  }

  get hasHeader(): boolean {
    return this.page(1)?.toString('latin1', 0, 16) === MAGIC
  }

  /** Whether the first page is the header of a queue, as far as it can be read. */
  get isQueue(): boolean {
    const page = this.page(1)
    return page !== undefined && this.hasHeader && page.readUInt16BE(16) === PAGE_SIZE && page.readUInt32BE(68) === APPLICATION_ID
  }

  close(): void {
    closeSync(this.#fd)
  }
}
