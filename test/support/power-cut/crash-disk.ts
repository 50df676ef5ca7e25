/**
 * A disk that loses power: each file has durable bytes and calls that were made since the begin of its last sync. A power cut keeps any part of
 * these calls, in any order: whole calls, single sectors of 512 or 4,096 bytes, garbage or zeros where a sector was half written,
 * with or without changes of the size. Of the changes to the folder since its last sync it keeps those up to some point.
 */
import type { DiskCall } from './recording.ts'

type Unsynced = Extract<DiskCall, { kind: 'write' | 'truncate' }>
type FolderCall = Extract<DiskCall, { kind: 'create' | 'unlink' | 'rename' }>

interface File {
  durable: Buffer
  unsynced: Unsynced[]
  /** Number of calls that are durable. */
  dropped: number
  /** Number of calls, durable or not, at the begin of the sync of each thread. */
  readonly begun: Map<number, number>
}

export type Image = ReadonlyMap<string, Buffer>

export class CrashDisk {
  readonly #files = new Map<number, File>()
  #durableNames = new Map<string, number>()
  #unsyncedNames: FolderCall[] = []

  apply(call: DiskCall): void {
    switch (call.kind) {
      case 'create':
        this.#files.set(call.file, { durable: Buffer.alloc(0), unsynced: [], dropped: 0, begun: new Map() })
        this.#unsyncedNames.push(call)
        return
      case 'unlink':
      case 'rename':
        this.#unsyncedNames.push(call)
        return
      case 'write':
      case 'truncate':
        this.#file(call.file).unsynced.push(call)
        return
      case 'begin': {
        const file = this.#file(call.file)
        file.begun.set(call.thread, file.dropped + file.unsynced.length)
        return
      }
      case 'sync': {
        const file = this.#file(call.file)
        const count = Math.max(0, (file.begun.get(call.thread) ?? 0) - file.dropped)
        file.durable = synced({ durable: file.durable, unsynced: file.unsynced.slice(0, count) })
        file.unsynced = file.unsynced.slice(count)
        file.dropped += count
        return
      }
      case 'sync folder':
        this.#durableNames = named(this.#durableNames, this.#unsyncedNames)
        this.#unsyncedNames = []
        return
      case 'written':
      case 'durable':
        return
    }
  }

  /** Whether there is anything that a power cut could lose. */
  get isVolatile(): boolean {
    return this.#unsyncedNames.length > 0 || [...this.#files.values()].some(({ unsynced }) => unsynced.length > 0)
  }

  /** The files after a power cut now. */
  cut(chance: () => number): Image {
    const kept = Math.floor(chance() * (this.#unsyncedNames.length + 1))
    const names = named(this.#durableNames, this.#unsyncedNames.slice(0, kept))
    return new Map([...names].map(([name, file]) => [name, afterCut(this.#file(file), chance)]))
  }

  #file(number: number): File {
    const file = this.#files.get(number)
    if (file === undefined) throw new Error(`file ${number} was not created`)
    return file
  }
}

function named(names: ReadonlyMap<string, number>, calls: readonly FolderCall[]): Map<string, number> {
  const next = new Map(names)
  for (const call of calls) {
    if (call.kind === 'create') next.set(call.name, call.file)
    else {
      const file = next.get(call.name)
      next.delete(call.name)
      if (call.kind === 'rename' && file !== undefined) next.set(call.to, file)
    }
  }
  return next
}

/** Bytes of a file with room to grow; zero behind the size. */
class Bytes {
  #bytes: Buffer
  size: number

  constructor(initial: Buffer, room: number) {
    this.#bytes = Buffer.alloc(Math.max(room, initial.length))
    initial.copy(this.#bytes)
    this.size = initial.length
  }

  resize(size: number): void {
    if (size < this.size) this.#bytes.fill(0, size, this.size)
    this.size = size
  }

  /** The part of a written range that lies within the size. */
  range(from: number, to: number): Buffer {
    return this.#bytes.subarray(from, Math.min(to, this.size))
  }

  result(): Buffer {
    return this.#bytes.subarray(0, this.size)
  }
}

const endOf = (call: Unsynced): number => (call.kind === 'truncate' ? call.size : call.at + call.bytes.length)

const bytesFor = ({ durable, unsynced }: Pick<File, 'durable' | 'unsynced'>): Bytes =>
  new Bytes(
    durable,
    unsynced.reduce((most, call) => Math.max(most, endOf(call)), 0),
  )

function synced(file: Pick<File, 'durable' | 'unsynced'>): Buffer {
  const bytes = bytesFor(file)
  for (const call of file.unsynced) {
    bytes.resize(call.kind === 'truncate' ? call.size : Math.max(bytes.size, endOf(call)))
    if (call.kind === 'write') bytes.range(call.at, endOf(call)).set(call.bytes)
  }
  return bytes.result()
}

/** Shares of the calls, and of the sectors of a call, that reach the disk. */
const SHARES = [0, 0.05, 0.5, 0.95, 1]
/** Share of the sectors of kept calls that are half written. */
const TORN = 0.02

function afterCut(file: File, chance: () => number): Buffer {
  const { durable, unsynced } = file
  if (unsynced.length === 0) return durable
  const share = SHARES[Math.floor(chance() * SHARES.length)] ?? 1
  const sector = chance() < 0.5 ? 512 : 4_096
  const isOrdered = chance() < 0.3
  const calls = isOrdered ? unsynced.slice(0, Math.floor(chance() * (unsynced.length + 1))) : shuffled(unsynced, chance)
  const bytes = bytesFor(file)
  for (const call of calls) {
    if (!isOrdered && chance() > Math.max(share, 0.1)) continue
    if (call.kind === 'truncate') bytes.resize(call.size)
    else write(bytes, call, { sector, share: isOrdered ? 1 : share, chance })
  }
  return bytes.result()
}

interface Tearing {
  readonly sector: number
  readonly share: number
  readonly chance: () => number
}

/** Sectors are counted from the start of the file. */
function write(bytes: Bytes, call: Extract<Unsynced, { kind: 'write' }>, { sector, share, chance }: Tearing): void {
  const { at, bytes: data } = call
  // The size of a file and its content reach the disk separately.
  if (chance() < 0.9) bytes.resize(Math.max(bytes.size, endOf(call)))
  for (let from = at; from < endOf(call);) {
    const to = Math.min(endOf(call), (Math.floor(from / sector) + 1) * sector)
    const kept = bytes.range(from, to)
    if (kept.length === 0) return
    if (chance() < share) {
      const torn = chance() < TORN ? chance() : 1
      data.copy(kept, 0, from - at)
      if (torn < 0.5) kept.fill(0)
      else if (torn < 1) for (let i = 0; i < kept.length; i++) kept[i] = Math.floor(chance() * 256)
    }
    from = to
  }
}

function shuffled<T>(all: readonly T[], chance: () => number): readonly T[] {
  const order = [...all]
  for (let i = order.length - 1; i > 0; i--) {
    const j = Math.floor(chance() * (i + 1))
    const other = order[j] as T
    order[j] = order[i] as T
    order[i] = other
  }
  return order
}
