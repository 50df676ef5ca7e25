/** docs/performance.md: the published results as tables, for users. The targets of a run are printed by `npm run bench -- report`. */
import { formatMeasured } from '../bench/figures/figure.ts'
import { formatSpread, type Summary } from '../bench/report.ts'
import type { Spread } from '../bench/statistics.ts'
import type { Circumstances, Published, PublishedPart, PublishedRelays } from './published.ts'

/** Columns of contestants. */
const TITLES: Readonly<Record<string, string>> = {
  tree: 'deferd',
  haraka: 'Haraka',
  postfix: 'Postfix',
}

const titleOf = (contestant: string): string => TITLES[contestant] ?? contestant

/** Contestants of the bench that show the cost of a part of deferd. They have no column. */
const PARTS_OF_DEFERD: ReadonlySet<string> = new Set(['without-store', 'base', 'maps', 'limits', 'shares'])

export function performancePage({ relays, parts }: Published): string {
  const subjects = Map.groupBy(parts, ({ subject }) => subject)
  return [INTRODUCTION, ...relays.map((run) => relaySection(besideOthers(run))), ...[...subjects].map(subjectSection)]
    .join('\n\n')
    .concat('\n')
}

const INTRODUCTION = `# Performance

Figures of [the bench](bench.md), which explains the cases and the measures: mail over loopback, client, relay and sink on one machine, in turns. A
number is the median of the rounds; the smallest and the largest follow in parentheses. Numbers of two machines do not compare, ratios of the
same round do. \`npm run bench -- report FILE…\` writes this page from the results of a run. [CPU time](cpu-time.md) tells where it goes, and which
changes were measured.`

const besideOthers = (run: PublishedRelays): PublishedRelays => ({
  ...run,
  contestants: run.contestants.filter(({ name }) => !PARTS_OF_DEFERD.has(name)),
  omitted: run.omitted.filter(({ name }) => !PARTS_OF_DEFERD.has(name)),
})

function relaySection(run: PublishedRelays): string {
  const others = run.contestants.map(({ name }) => name).filter((name) => name !== 'tree')
  const beside = others.length === 0 ? 'Relayed mail' : `Beside ${others.map(titleOf).join(', ')}`
  return [
    `## ${beside}`,
    `${rounds(run.rounds)} of ${count(run.messages)} messages or a part of them, ${circumstances(run)}`,
    table(
      ['column', 'version'],
      run.contestants.map(({ name, about }) => [titleOf(name), about]),
    ),
    ...ratioTable(run),
    'CPU time per message, in ms:',
    measureTable(run, ({ cpu }) => formatSpread(cpu, 3)),
    'Messages per second:',
    measureTable(run, ({ rate }) => formatSpread(rate, 0)),
    ...optionalTable(run, 'Time from the final dot to 250, p50 and p99 in ms:', ({ accept50, accept99 }) =>
      percentiles(accept50, accept99),
    ),
    ...optionalTable(run, 'Time from 250 to delivery, p50 and p99 in ms:', ({ deliver50, deliver99 }) => percentiles(deliver50, deliver99)),
    ...optionalTable(run, 'RSS of all processes at the end of a turn, in MB:', ({ rss }) => optional(rss, 0)),
    ...optionalTable(run, 'Delay of the event loop, p99 in ms:', ({ loop99 }) => optional(loop99, 1)),
    ...omissions(run),
  ].join('\n\n')
}

function circumstances({ began, machine, others }: Circumstances): string {
  const disk = machine.inMemory === null ? '' : `, in memory (${machine.inMemory}), where syncs cost nothing`
  const day = began.slice(0, 10)
  const by = `${machine.cores} × ${machine.processor}, Node ${machine.node.replace(/^v/, '')}${disk}`
  return `${day}, ${by}; other programs took ${(others * 100).toFixed(0)} % of the CPU time.`
}

/** A row for each case, a column for each contestant. Cases without a value have no row. */
function measureTable(run: PublishedRelays, text: (summary: Summary) => string | null): string {
  const names = run.contestants.map(({ name }) => name)
  const rows = run.cases.map(({ name }) => [`\`${name}\``, ...names.map((contestant) => cell(run, name, contestant, text))])
  return table(['case', ...names.map(titleOf)], rows.filter(hasValue))
}

function cell({ summaries }: PublishedRelays, name: string, contestant: string, text: (summary: Summary) => string | null): string {
  const summary = summaries.find((one) => one.case === name && one.contestant === contestant)
  return summary === undefined ? '' : (text(summary) ?? '')
}

/** A table with a caption, if any contestant has a value. */
function optionalTable(run: PublishedRelays, caption: string, text: (summary: Summary) => string | null): readonly string[] {
  return run.summaries.some((summary) => text(summary) !== null) ? [caption, measureTable(run, text)] : []
}

/** The measures of deferd divided by those of the others. */
function ratioTable(run: PublishedRelays): readonly string[] {
  const others = run.contestants.map(({ name }) => name).filter((name) => name !== 'tree')
  if (!run.summaries.some(({ cpuRatio }) => cpuRatio !== null)) return []
  const head = ['case', ...others.flatMap((name) => [`CPU ÷ ${titleOf(name)}`, `messages/s ÷ ${titleOf(name)}`])]
  const rows = run.cases.map(({ name }) => [
    `\`${name}\``,
    ...others.flatMap((contestant) => [
      cell(run, name, contestant, ({ cpuRatio }) => optional(inverse(cpuRatio), 2)),
      cell(run, name, contestant, ({ rateRatio }) => optional(inverse(rateRatio), 2)),
    ]),
  ])
  return ['deferd divided by the others, in the same round:', table(head, rows.filter(hasValue))]
}

const inverse = (spread: Spread | null): Spread | null =>
  spread === null ? null : { median: 1 / spread.median, min: 1 / spread.max, max: 1 / spread.min }

const hasValue = (cells: readonly string[]): boolean => cells.some((one, n) => n > 0 && one !== '')

const optional = (spread: Spread | null, digits: number): string | null => (spread === null ? null : formatSpread(spread, digits))

function percentiles(median: Spread | null, late: Spread | null): string | null {
  return median === null || late === null ? null : `${median.median.toFixed(1)}, ${formatSpread(late, 1)}`
}

function omissions({ omitted }: PublishedRelays): readonly string[] {
  if (omitted.length === 0) return []
  const groups = Map.groupBy(omitted, ({ name, reason }) => `${titleOf(name)}: ${reason}`)
  const rows = [...groups].map(([reason, group]) => {
    const cases = group.flatMap(({ case: name }) => (name === null ? [] : [`\`${name}\``]))
    return `- ${reason}${cases.length === 0 ? '' : ` (${cases.join(', ')})`}`
  })
  return ['Omitted:', rows.join('\n')]
}

function subjectSection([subject, parts]: [string, readonly PublishedPart[]]): string {
  return [`## ${subject}`, ...parts.map(partSection)].join('\n\n')
}

function partSection(part: PublishedPart): string {
  const command = part.subject === 'soak' ? '`npm run soak`' : `\`npm run bench -- ${part.subject} --only ${part.part}\``
  const size = part.size === null || part.size === 1 ? '' : ` at ${part.size} of the full size`
  const extent = part.rounds === null ? part.part : `${rounds(part.rounds)}${size}`
  const commit = part.commit === null ? '' : `, commit ${part.commit}`
  return `${command}, ${extent}${commit}, ${circumstances(part)}\n\n${formatMeasured(part.figures)}`
}

const rounds = (value: number): string => `${value} ${value === 1 ? 'round' : 'rounds'}`

const count = (value: number): string => value.toLocaleString('en-US')

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
