/**
 * A subject of the bench: parts that measure figures with targets. Each part starts what it needs, and its processes end with it.
 */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { treeVersion } from '../deferd.ts'
import { describeMachine } from '../machine.ts'
import { readUse, shareOfOthers } from '../processor-time.ts'
import { formatFigures, isReached, type Figure } from './figure.ts'
import { figureUsage, parseFigureOptions, type FigureOptions } from './figure-options.ts'

/** Environment of one part. */
export interface Setting {
  /** A new folder, removed at the end. */
  readonly folder: string
  /** The folder of filled queues, which may outlast the run. */
  readonly filled: string
  readonly signal: AbortSignal
  /** Actions at the end of the part. */
  readonly undo: AsyncDisposableStack
  readonly rounds: number
  readonly say: (line: string) => void
  /** A full number, reduced to the size of the run. */
  readonly sized: (full: number) => number
}

export interface Part {
  readonly name: string
  /** Its subject, in a few words. */
  readonly about: string
  readonly measure: (setting: Setting) => Promise<readonly Figure[]>
}

export interface Subject {
  readonly name: string
  /** Lines of the help text. */
  readonly about: string
  /** The reason why it cannot run here; null when it can. */
  readonly missing: () => string | null
  readonly parts: readonly Part[]
}

interface Run {
  readonly signal: AbortSignal
  readonly say: (line: string) => void
}

export async function runSubject(subject: Subject, args: readonly string[], { signal, say }: Run): Promise<void> {
  const options = parseFigureOptions(
    args,
    subject.parts.map(({ name }) => name),
  )
  if (options === 'help') return say(figureUsage(subject.name, subject.about, subject.parts).trimEnd())
  const reason = subject.missing()
  if (reason !== null) throw new Error(reason)
  await using undo = new AsyncDisposableStack()
  const folder = mkdtempSync(join(tmpdir(), 'deferd-bench-'))
  undo.defer(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }))
  // The user of PostgreSQL has to get through to its folder.
  chmodSync(folder, 0o711)
  await measureAll(subject, options, { signal, say, folder })
}

async function measureAll({ name, parts }: Subject, options: FigureOptions, run: Run & { readonly folder: string }): Promise<void> {
  const { say, folder } = run
  const [began, commit] = [new Date().toISOString(), await treeVersion()]
  const machine = describeMachine(folder)
  say(`${machine.cores} × ${machine.processor}, Node ${machine.node}, ${options.rounds} rounds, ${options.size} of the full size`)
  const { rounds, size } = options
  const measured: object[] = []
  for (const part of parts.filter(({ name: one }) => options.only.includes(one))) {
    say(`\n${part.name}: ${part.about}`)
    const { others, figures } = await measurePart(part, options, run)
    measured.push({ part: part.name, others, figures: figures.map((figure) => ({ ...figure, reached: isReached(figure) })) })
    // Written after each part: an interrupted run keeps those that are complete.
    const result = { subject: name, commit, began, machine, rounds, size, parts: measured }
    writeFileSync(options.json, `${JSON.stringify(result, null, 2)}\n`)
  }
  say(`\nwritten to ${resolve(options.json)}`)
}

async function measurePart(part: Part, { rounds, size, keep }: FigureOptions, { signal, say, folder }: Run & { readonly folder: string }) {
  const own = join(folder, part.name)
  const filled = resolve(keep ?? join(folder, 'filled'))
  mkdirSync(own)
  mkdirSync(filled, { recursive: true })
  const before = readUse(process.pid)
  const figures = await (async () => {
    await using undo = new AsyncDisposableStack()
    const sized = (full: number): number => Math.max(1, Math.round(full * size))
    // A part that waits for what does not come must end with the bench, so that its processes are ended.
    return await Promise.race([part.measure({ folder: own, filled, signal, undo, rounds, say, sized }), interrupted(signal)])
  })()
  const others = shareOfOthers(before, readUse(process.pid))
  say(`\n${formatFigures(figures)}\nother programs took ${(others * 100).toFixed(0)} % of the CPU time`)
  return { others, figures }
}

/** Rejects when the bench is interrupted. */
const interrupted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    const end = (): void => reject(signal.reason as Error)
    if (signal.aborted) end()
    else signal.addEventListener('abort', end, { once: true })
  })
