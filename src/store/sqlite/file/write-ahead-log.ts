/**
 * Reads SQLite's write-ahead log (https://www.sqlite.org/fileformat2.html#the_write_ahead_log) without SQLite, because SQLite takes
 * the first frame with a wrong checksum for the end of the log and drops all later commits.
 */

/** Size of the header of a log in bytes. The salts are at 16 to 24. */
export const LOG_HEADER = 32
const FRAME_HEADER = 24
/** Magic number of a log whose checksums are computed over big-endian words. */
const BIG_ENDIAN = 0x377f0683

export interface WriteAheadLog {
  /** Newest sound version of each page: its offset in the log. */
  readonly pages: ReadonlyMap<number, number>
  /** Pages whose newest version is in a damaged frame. */
  readonly lost: ReadonlySet<number>
  /** True when the page number of a damaged frame is unknown, so that the newest version of any page may be lost. */
  readonly lostAny: boolean
  /** Number of pages of the database after the last commit; null without a commit. */
  readonly pageCount: number | null
  /**
   * `damaged`: commits follow a damaged frame that was synced before them. `incomplete`: the commits from the damaged frame on were not synced
   * before a power failure, and none of them was acknowledged; `pages` leaves them out.
   */
  readonly state: 'sound' | 'incomplete' | 'damaged'
}

interface Frame {
  readonly page: number
  readonly commit: number
  readonly at: number
  readonly isSound: boolean
  /** Whether the salts are those of the log. */
  readonly isCurrent: boolean
}

/** `synced` is the number of frames that are known to be synced; null for a log of which each commit was synced before the next one. */
export function readLog(log: Buffer, pageSize: number, synced: number | null = null): WriteAheadLog {
  const frames = framesOf(log, pageSize)
  const committed = frames.slice(0, 1 + frames.findLastIndex(({ isSound, commit }) => isSound && commit > 0))
  const state = headerIsSound(log) || committed.length === 0 ? stateOf(committed, synced) : 'damaged'
  // SQLite drops an incomplete commit as a whole, and so does this reader: half of a commit is not a state of the queue.
  const used = state === 'incomplete' ? completeCommits(committed) : committed
  const pages = new Map<number, number>()
  const lost = new Set<number>()
  for (const { page, at, isSound } of used) {
    if (isSound) {
      pages.set(page, at)
      lost.delete(page)
    } else lost.add(page)
  }
  for (const page of lost) pages.delete(page)
  const pageCount = used.at(-1)?.commit ?? null
  const most = pageCount ?? 0
  const lostAny = used.some(({ isSound, isCurrent, page }) => !isSound && (!isCurrent || page < 1 || page > most))
  return {
    pages,
    lost: new Set([...lost].filter((page) => page >= 1 && page <= most)),
    lostAny,
    pageCount,
    state,
  }
}

/**
 * Whether a log without a sound header has nothing that the database file, read by `inFile`, lacks. SQLite writes the header anew once a checkpoint has
 * copied the log: a loss of power in this moment is no damage, and SQLite ignores such a log.
 */
export function isCopied(log: Buffer, pageSize: number, inFile: (page: number) => Buffer | undefined): boolean {
  if (headerIsSound(log)) return false
  const newest = new Map(framesOf(log, pageSize).flatMap(({ page, at, isCurrent }) => (isCurrent ? [[page, at] as const] : [])))
  return [...newest].every(([page, at]) => inFile(page)?.equals(log.subarray(at, at + pageSize)) === true)
}

/** The frames up to the last commit before the first damaged frame. */
function completeCommits(frames: readonly Frame[]): readonly Frame[] {
  const before = frames.slice(
    0,
    frames.findIndex(({ isSound }) => !isSound),
  )
  return before.slice(0, 1 + before.findLastIndex(({ commit }) => commit > 0))
}

function stateOf(committed: readonly Frame[], synced: number | null): WriteAheadLog['state'] {
  const bad = committed.findIndex(({ isSound }) => !isSound)
  if (bad < 0) return 'sound'
  if (synced !== null) return bad < synced ? 'damaged' : 'incomplete'
  // Each commit was synced before the next one was written. When two commits end at or after the damaged frame, that frame had been
  // on the disk, so no unfinished write explains the damage.
  return committed.slice(bad).filter(({ isCurrent, commit }) => isCurrent && commit > 0).length > 1 ? 'damaged' : 'incomplete'
}

/** All frames in the file. A frame with other salts, which is damaged or left from an older log, is neither sound nor current. */
function framesOf(log: Buffer, pageSize: number): Frame[] {
  const size = FRAME_HEADER + pageSize
  const count = Math.floor((log.length - LOG_HEADER) / size)
  if (count < 1) return []
  const salts = headerIsSound(log) ? log.subarray(16, 24) : log.subarray(LOG_HEADER + 8, LOG_HEADER + 16)
  const bigEndian = log.readUInt32BE(0) === BIG_ENDIAN
  const frames: Frame[] = []
  let before = log.subarray(24, 32)
  for (let n = 0, at = LOG_HEADER; n < count; n++, at += size) {
    const header = log.subarray(at, at + FRAME_HEADER)
    const isCurrent = header.subarray(8, 16).equals(salts)
    const isSound =
      isCurrent && follows(before, [header.subarray(0, 8), log.subarray(at + FRAME_HEADER, at + size)], header.subarray(16), bigEndian)
    frames.push({ page: header.readUInt32BE(0), commit: header.readUInt32BE(4), at: at + FRAME_HEADER, isSound, isCurrent })
    before = header.subarray(16, 24)
  }
  return frames
}

const headerIsSound = (log: Buffer): boolean =>
  log.length >= LOG_HEADER &&
  (log.readUInt32BE(0) & 0xfffffffe) === 0x377f0682 &&
  follows(Buffer.alloc(8), [log.subarray(0, 24)], log.subarray(24, 32), log.readUInt32BE(0) === BIG_ENDIAN)

/** Whether a stored checksum continues the one before it over some bytes. */
function follows(before: Buffer, parts: readonly Buffer[], stored: Buffer, bigEndian: boolean): boolean {
  let [s0, s1] = [before.readUInt32BE(0), before.readUInt32BE(4)]
  for (const part of parts) {
    const view = new DataView(part.buffer, part.byteOffset, part.byteLength)
    for (let i = 0; i < part.byteLength; i += 8) {
      s0 = (s0 + view.getUint32(i, !bigEndian) + s1) >>> 0
      s1 = (s1 + view.getUint32(i + 4, !bigEndian) + s0) >>> 0
    }
  }
  return stored.readUInt32BE(0) === s0 && stored.readUInt32BE(4) === s1
}
