/**
 * Damaged copies of a queue: pages overwritten, bits flipped, files cut, the write-ahead log damaged. The expected mail is found
 * without the readers under test: each message has a name of its own in its sender, recipients and content, and the pages that
 * hold parts of a message are those whose bytes contain the name.
 */
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { recipientId } from '../../src/mail/message.ts'
import { repairQueue } from '../../src/store/sqlite/file/repair.ts'
import type { Repair } from '../../src/store/repair-report.ts'
import { queueFile } from '../../src/store/folder/queue-folder.ts'
import { damagesOf } from '../../src/store/sqlite/file/full-check.ts'
import { openInlineStore } from '../../src/store/sqlite/clients/inline-store.ts'
import { SchemaChanged } from '../../src/store/errors.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import type { QueueStore } from '../../src/store/queue-store.ts'
import { deferred, delivered, mail, MIN, settleOne, T0 } from '../conformance/mail.ts'

const PAGE = 8192
const FRAME = PAGE + 24
const LOG_HEADER = 32

/** A message as it was queued. */
interface Queued {
  readonly name: string
  readonly id: number
  readonly content: string
  readonly to: readonly string[]
}

export interface Model {
  readonly directory: string
  readonly mail: ReadonlyMap<string, Queued>
  readonly gone: ReadonlySet<string>
}

const nameOf = (n: number): string => `m${String(n).padStart(5, '0')}`

/** Contents of less than a page, of some pages, and of several chunks. */
const contentOf = (name: string, n: number): string =>
  `Subject: ${name}\r\n\r\n${`${name} `.repeat([30, 300, 1500, 15_000][n % 4] ?? 30)}\r\n`

/** Fills a queue and leaves it as a crash does: most of it in the file, the rest in the write-ahead log. */
export async function filledQueue(messages: number): Promise<Model> {
  const directory = mkdtempSync(join(tmpdir(), 'deferd-damage-'))
  const live = join(directory, 'live')
  const { store, close } = await openLive(live)
  const queued = new Map<string, Queued>()
  const gone = new Set<string>()
  for (let n = 0; n < messages; n++) {
    const name = nameOf(n)
    const content = contentOf(name, n)
    const to = [`${name}-a@far.example`, `${name}-b@${n % 2 === 0 ? 'far' : 'else'}.example`]
    const entry = mail(store, {
      sender: `${name}@us.example`,
      to: to.map((address) => ({ address, leased: n % 3 === 0 })),
      content: [Buffer.from(content)],
    })
    await store.enqueue(entry)
    const { id } = entry.message
    if (n % 9 === 0) {
      for (const position of [0, 1]) await settleOne(store, id, delivered(recipientId(id, position), T0))
      gone.add(name)
    } else if (n % 3 === 0) {
      for (const position of [0, 1]) await settleOne(store, id, deferred(recipientId(id, position), T0 + MIN))
      queued.set(name, { name, id, content, to })
    } else queued.set(name, { name, id, content, to })
    if (n === Math.floor(messages * 0.7)) checkpoint(live)
  }
  // The daemon commits a heartbeat every few seconds.
  await store.upkeep.ping()
  const left = join(directory, 'left')
  copyQueue(live, left)
  await close()
  rmSync(live, { recursive: true })
  return { directory: left, mail: queued, gone }
}

async function openLive(directory: string): Promise<{ store: QueueStore; close: () => Promise<void> }> {
  copyQueue('', directory)
  const { store } = await openInlineStore({ directory })
  return { store, close: () => store.close() }
}

function checkpoint(directory: string): void {
  const db = new Database(queueFile(directory))
  db.pragma('wal_checkpoint(truncate)')
  db.close()
}

export function copyQueue(from: string, to: string): void {
  rmSync(to, { recursive: true, force: true })
  cpSync(mkdtempSync(join(tmpdir(), 'deferd-damage-empty-')), to, { recursive: true })
  for (const file of ['queue.db', 'queue.db-wal', 'generation'])
    if (from !== '' && existsSync(join(from, file))) cpSync(join(from, file), join(to, file))
}

export const KINDS = [
  'page',
  'two pages',
  'flip',
  'flips',
  'zeroed page',
  'misdirected page',
  'truncation',
  'wal page',
  'wal flip',
  'first page',
  'index page',
] as const
export type Kind = (typeof KINDS)[number]

type Draw = (below: number) => number

export function seeded(seed: number): Draw {
  let state = seed + 1
  return (below) => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) >>> 0
    const mixed = Math.imul(state ^ (state >>> 13), 0x297a2d39) >>> 0
    return ((mixed ^ (mixed >>> 16)) >>> 0) % below
  }
}

/** Damages a copy; returns the names of the messages with a part in the damaged bytes. */
export function damage(directory: string, kind: Kind, draw: Draw): ReadonlySet<string> {
  const path = queueFile(directory)
  const file = readFileSync(path)
  const log = readFileSync(`${path}-wal`)
  const pages = Math.floor(file.length / PAGE)
  const frames = Math.floor((log.length - LOG_HEADER) / FRAME)
  const touched = new Set<string>()
  const overwrite = (bytes: Buffer, at: number, by: (page: Buffer) => void): void => {
    const page = bytes.subarray(at, at + PAGE)
    for (const [name] of page.toString('latin1').matchAll(/m\d{5}/g)) touched.add(name)
    by(page)
  }
  const noise = (page: Buffer): void => {
    for (let n = 0; n < PAGE; n++) page[n] = draw(256)
  }
  const flip = (page: Buffer): void => {
    const at = draw(PAGE)
    page[at] = (page[at] ?? 0) ^ (1 << draw(8))
  }
  const anyPage = (): number => PAGE * (1 + draw(pages - 1))
  // Frames of the current log have the salts of its header; others are left over from an older log, and no reader uses them.
  const current = Array.from({ length: frames }, (_, n) => LOG_HEADER + FRAME * n).filter((at) =>
    log.subarray(at + 8, at + 16).equals(log.subarray(16, 24)),
  )
  const anyFrame = (): number => (current[draw(current.length)] ?? LOG_HEADER) + 24
  const logged = new Set(current.map((at) => log.readUInt32BE(at)))
  // Pages of indexes, by their first byte, without a newer version in the log.
  const indexPages = Array.from({ length: pages }, (_, n) => n).filter(
    (n) => !logged.has(n + 1) && [0x02, 0x0a].includes(file[n * PAGE] ?? 0),
  )
  switch (kind) {
    case 'page':
      overwrite(file, anyPage(), noise)
      break
    case 'two pages':
      overwrite(file, anyPage(), noise)
      overwrite(file, anyPage(), noise)
      break
    case 'flip':
      overwrite(file, anyPage(), flip)
      break
    case 'flips':
      for (let n = 0; n < 20; n++) overwrite(file, anyPage(), flip)
      break
    case 'zeroed page':
      overwrite(file, anyPage(), (page) => page.fill(0))
      break
    case 'misdirected page': {
      const other = Buffer.from(file.subarray(anyPage()).subarray(0, PAGE))
      overwrite(file, anyPage(), (page) => other.copy(page))
      break
    }
    case 'truncation': {
      const kept = PAGE * (2 + draw(pages - 2)) + draw(PAGE)
      for (const [name] of file
        .subarray(kept - (kept % PAGE))
        .toString('latin1')
        .matchAll(/m\d{5}/g))
        touched.add(name)
      writeFileSync(path, file.subarray(0, kept))
      return touched
    }
    case 'wal page':
      overwrite(log, anyFrame(), noise)
      break
    case 'wal flip':
      overwrite(log, anyFrame(), flip)
      break
    case 'first page':
      // The newest version of the page: in the log when it is there.
      for (const at of current) if (log.readUInt32BE(at) === 1) overwrite(log, at + 24, noise)
      overwrite(file, 0, noise)
      break
    case 'index page':
      overwrite(file, PAGE * (indexPages[draw(indexPages.length)] ?? 1), draw(2) === 0 ? noise : flip)
      break
  }
  writeFileSync(path, file)
  writeFileSync(`${path}-wal`, log)
  return touched
}

export interface Verdict {
  readonly kind: Kind
  readonly seed: number
  readonly deliveredWhole: number
  readonly deliveredDamaged: number
  readonly setAside: number
  /** Messages without a damaged part among them: a page above theirs, or the log, was damaged. */
  readonly setAsideReadable: number
  readonly reported: number
  /** Messages on readable pages that were neither delivered nor salvaged. */
  readonly missed: readonly string[]
  /** Messages that are neither delivered nor visible nor reported. */
  readonly omitted: readonly string[]
  readonly sentAgain: readonly string[]
  readonly repairs: number
}

interface Collected {
  readonly whole: Map<string, Set<string>>
  damaged: number
  readonly other: string[]
}

/** Opens a damaged copy as its owner does, delivers all mail, repairs what the full check finds, and delivers the rest. */
export async function examine(model: Model, directory: string, kind: Kind, seed: number, touched: ReadonlySet<string>): Promise<Verdict> {
  const found: Collected = { whole: new Map(), damaged: 0, other: [] }
  const repairs: Repair[] = []
  let setAside = await drain(model, directory, found, repairs)
  if (setAside === null || fullCheck(directory).length > 0) {
    repairs.push(repairQueue(directory, setAside === null ? 'damage in operation' : 'full check'))
    setAside = await drain(model, directory, found, repairs)
  }
  if (setAside === null) throw new Error(`${kind} ${seed}: the repaired queue cannot be read`)
  const visible = setAside
  const remaining = fullCheck(directory)
  if (remaining.length > 0) throw new Error(`${kind} ${seed}: the repaired queue is damaged: ${remaining.join('; ')}`)
  const lost = repairs.flatMap((repair) => repair.lost)
  const isReported = ({ id }: Queued): boolean => lost.some((line) => covers(line, id))
  const [missed, omitted]: [string[], string[]] = [[], []]
  let [deliveredWhole, reported, setAsideReadable] = [0, 0, 0]
  for (const one of model.mail.values()) {
    const isWhole = found.whole.get(one.name)?.size === one.to.length
    if (isWhole) deliveredWhole++
    else if (visible.has(one.id)) setAsideReadable += touched.has(one.name) ? 0 : 1
    else if (!touched.has(one.name)) missed.push(one.name)
    else if (isReported(one)) reported++
    else omitted.push(one.name)
  }
  return {
    kind,
    seed,
    deliveredWhole,
    deliveredDamaged: found.damaged,
    setAside: visible.size,
    setAsideReadable,
    reported,
    missed,
    omitted,
    sentAgain: found.other,
    repairs: repairs.length,
  }
}

/** Whether a sentence about an unreadable page names a message. */
function covers(line: string, id: number): boolean {
  const [, first, last] = /messages (?:from )?(\d+)(?: to (\d+))?/.exec(line) ?? []
  return first !== undefined && id >= Number(first) && (last === undefined || id <= Number(last))
}

function fullCheck(directory: string): readonly string[] {
  const db = new Database(queueFile(directory), { readonly: true })
  try {
    return damagesOf(db)
  } finally {
    db.close()
  }
}

/**
 * Delivers all mail that is due; returns the ids of the messages in `corrupt` and `hold`. Null when damage ended the work: the daemon's
 * worker then repairs the queue (worker-main.ts), here the caller does.
 */
async function drain(model: Model, directory: string, found: Collected, repairs: Repair[]): Promise<ReadonlySet<number> | null> {
  const opened = await openInlineStore({ directory }).catch((error: unknown) => {
    // The damage is in the text of the schema: the start names it, and the operator runs the repair.
    if (error instanceof SchemaChanged) return null
    throw error
  })
  if (opened === null) return null
  const { store, reader, recovery } = opened
  if (recovery.repair !== null) repairs.push(recovery.repair)
  const now = T0 + 10 * MIN
  try {
    for (const destination of ['far.example', 'else.example']) {
      for (;;) {
        const { requests } = await store.claimDue({ destination, now, bands: [{ band: 0, limit: 100 }], recipientLimit: 50 })
        if (requests.length === 0) break
        for (const { message, recipients } of requests) {
          const content = await contentIn(store, message.contentId)
          if (content === null) {
            await store.quarantine(message.id, 'unreadable')
            continue
          }
          for (const { id, address } of recipients) {
            await settleOne(store, message.id, delivered(id, now))
            note(model, found, { sender: message.sender, address, content })
          }
        }
      }
    }
    const listed = await Promise.all(
      (['corrupt', 'hold'] as const).map((queue) => reader.list({ ...ANY_MESSAGE, queue }, { after: 0, limit: 10_000 })),
    )
    return new Set(listed.flat().map(({ message }) => message.id))
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'StoreUnavailable') throw error
    return null
  } finally {
    await store.close()
  }
}

async function contentIn(store: QueueStore, content: number): Promise<string | null> {
  const parts: Uint8Array[] = []
  try {
    for (let part = await store.readChunk(content, 0); part !== undefined; part = await store.readChunk(content, parts.length))
      parts.push(part)
  } catch (error) {
    if (error instanceof Error && error.name === 'ContentUnreadable') return null
    throw error
  }
  return Buffer.concat(parts).toString()
}

function note(model: Model, found: Collected, { sender, address, content }: { sender: string; address: string; content: string }): void {
  const name = sender.slice(0, 6)
  const queued = model.mail.get(name)
  if (model.gone.has(name)) found.other.push(name)
  else if (queued === undefined || sender !== `${name}@us.example` || content !== queued.content || !queued.to.includes(address))
    found.damaged++
  else if (found.whole.get(name)?.has(address) === true) found.other.push(name)
  else found.whole.set(name, (found.whole.get(name) ?? new Set()).add(address))
}

/** Whether the damage had an effect: the queue was rebuilt, or messages were quarantined. Damage of unused bytes has none. */
export const isNoticed = ({ repairs, setAside }: Verdict): boolean => repairs > 0 || setAside > 0

/** One line per kind of damage. */
export function table(verdicts: readonly Verdict[]): string {
  const rows = KINDS.map((kind) => {
    const those = verdicts.filter((one) => one.kind === kind)
    const sum = (of: (one: Verdict) => number) => those.reduce((total, one) => total + of(one), 0)
    const figures = [
      those.length,
      those.filter(({ repairs }) => repairs > 0).length,
      those.filter(isNoticed).length,
      sum((o) => o.deliveredWhole),
      sum((o) => o.setAside),
      sum((o) => o.setAsideReadable),
      sum((o) => o.reported),
      sum((o) => o.deliveredDamaged),
      sum((o) => o.missed.length),
      sum((o) => o.omitted.length),
      sum((o) => o.sentAgain.length),
    ]
    return `${kind.padEnd(17)}${figures.map((figure) => String(figure).padStart(10)).join('')}`
  })
  const heads = ['copies', 'rebuilt', 'noticed', 'delivered', 'set aside', 'readable', 'reported', 'damaged', 'missed', 'omitted', 'again']
  return [`${''.padEnd(17)}${heads.map((head) => head.padStart(10)).join('')}`, ...rows].join('\n')
}
