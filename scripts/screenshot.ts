/**
 * Draws docs/images/queue-show.svg: the screen of `deferd queue show` for a deferred message, taken from a run of the
 * relay in virtual time. Every run gives the same bytes; scripts/docs.ts writes the file.
 */
import type { Config } from '../src/config/options.ts'
import { FileAccess } from '../src/cli/queue-client/file-access.ts'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTransport } from 'nodemailer'
import { run } from '../src/cli/program.ts'
import { processShell } from '../src/cli/process-shell.ts'
import { createWorld, type World } from '../src/testkit/index.ts'

/** Columns of the terminal; longer lines wrap. */
const COLUMNS = 112
/** Pixels: the size of letters, the advance of one, from line to line, around the screen, and the bar above it. */
const FONT_SIZE = 14
const CELL = 8.4
const LINE = 20
const MARGIN = 20
const TITLE = 12

/** The screen of `deferd queue show` 20 minutes after a message was accepted whose recipient's server is busy. */
async function queueShowScreen(): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'deferd-screenshot-'))
  try {
    await using world = await createWorld({ store: { directory }, config: { myhostname: 'relay.example' } })
    world.destination('isp.example').defers('*', '451 4.3.2 Try again later')
    const { response } = await createTransport(world.transport()).sendMail({
      from: 'app@shop.example',
      to: 'ann@isp.example',
      subject: 'Your invoice',
      messageId: '<invoice-2741@shop.example>',
      date: new Date(world.now()),
      text: 'The invoice is attached.',
    })
    await world.advance('20m')
    const command = ['queue', 'show', / as (\w+)/.exec(response)?.[1] ?? '']
    return `$ deferd ${command.join(' ')}\n${await screenOf(world, directory, command)}`
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

/** The output of a command run beside the relay of a world. */
async function screenOf(world: World, directory: string, command: readonly string[]): Promise<string> {
  let screen = ''
  const stdout = {
    columns: COLUMNS,
    rows: null,
    write: (data: string | Uint8Array) => {
      screen += typeof data === 'string' ? data : Buffer.from(data).toString('utf8')
      return Promise.resolve()
    },
  }
  const shell = {
    ...processShell(),
    env: { DEFERD_QUEUE_DIRECTORY: directory, DEFERD_MYHOSTNAME: 'relay.example' },
    defaultFiles: { folder: join(directory, 'deferd.toml'), system: join(directory, 'etc/deferd.toml') },
    clock: world.clock,
    openReader: (config: Config) => new FileAccess(config, world.clock).openReader(),
    program: 'deferd',
    stdout,
    stderr: stdout,
    liveDestinations: () => Promise.resolve(world.destinations()),
  }
  const code = await run(shell, command)
  if (code !== 0) throw new Error(`deferd ${command.join(' ')} ended with exit code ${code}: ${screen}`)
  return screen
}

/** Class of a text by the colour that the command gave it (SGR, ECMA-48). */
const COLOURS: Readonly<Record<string, string>> = { 1: 'heading', 2: 'faint', 31: 'bad', 32: 'good', 33: 'waiting', 35: 'stopped' }

/** Letters of the same class. */
type Part = readonly [kind: string, text: string]

/** A line of output in its parts: the prompt, a heading, or the name of a fact and its value. */
function partsOf(line: string): readonly Part[] {
  if (line.startsWith('$ ')) return [['command', line]]
  if (/^\S/.test(line)) return [['heading', line]]
  const name = /^ {2}[a-z][a-z -]{0,12}(?= {2,})/.exec(line)?.[0] ?? ''
  const value: Part = ['value', line.slice(name.length)]
  return name === '' ? [value] : [['name', name], value]
}

/** A line that may have colours, in its parts. Throws an Error for a control sequence that has no class. */
function colouredParts(line: string): readonly Part[] {
  const [first = '', ...pieces] = line.split('\u001b[')
  return [
    ...(first === '' ? [] : partsOf(first)),
    ...pieces.flatMap((piece): readonly Part[] => {
      const [, code = '', text = ''] = /^(\d+)m(.*)$/.exec(piece) ?? []
      const colour = code === '0' ? 'value' : COLOURS[code]
      if (colour === undefined) throw new Error(`no colour for the control sequence in ${JSON.stringify(line)}`)
      return text === '' ? [] : [[colour, text]]
    }),
  ]
}

/** The rows that a line takes on the terminal; it continues in the first column, as terminals have it. */
function rowsOf(parts: readonly Part[]): readonly (readonly Part[])[] {
  const rows: Part[][] = [[]]
  let column = 0
  for (const [kind, text] of parts) {
    for (const letter of text) {
      if (column++ % COLUMNS === 0 && column > 1) rows.push([])
      const row = rows.at(-1)
      const last = row?.at(-1)
      if (last?.[0] === kind) row?.splice(-1, 1, [kind, last[1] + letter])
      else row?.push([kind, letter])
    }
  }
  return rows
}

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

/**
 * One row of the picture. `textLength` keeps the columns aligned with any monospace font; blanks are no-break spaces, which no
 * renderer collapses.
 */
function drawnRow(row: readonly Part[], index: number): string {
  let column = 0
  const parts = row.map(([kind, text]) => {
    const lead = text.length - text.trimStart().length
    const shown = text.trim()
    const x = MARGIN + (column + lead) * CELL
    column += text.length
    const length = (shown.length * CELL).toFixed(1)
    return shown === ''
      ? ''
      : `<tspan class="${kind}" x="${x.toFixed(1)}" textLength="${length}">${escaped(shown).replaceAll(' ', '\u00a0')}</tspan>`
  })
  return `<text y="${MARGIN + TITLE + (index + 1) * LINE}">${parts.join('')}</text>`
}

/** A screen as SVG: a dark window of its own, so that light and dark pages show it alike; no fonts from elsewhere. */
function picture(screen: string, title: string): string {
  const rows = screen
    .trimEnd()
    .split('\n')
    .flatMap((line) => rowsOf(colouredParts(line)))
  const width = Math.ceil(2 * MARGIN + COLUMNS * CELL)
  const height = 2 * MARGIN + TITLE + Math.ceil((rows.length + 0.5) * LINE)
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<style>
text { font: ${FONT_SIZE}px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace; }
.command { fill: #7ee787; font-weight: bold; }
.heading { fill: #ffffff; font-weight: bold; }
.name { fill: #79c0ff; }
.value { fill: #d6dde5; }
.good { fill: #7ee787; }
.waiting { fill: #e3b341; }
.bad { fill: #ff7b72; }
.stopped { fill: #d2a8ff; }
.faint { fill: #8b949e; }
</style>`,
    `<rect x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="8" fill="#161b22" stroke="#57606a"/>`,
    ...['#ff5f57', '#febc2e', '#28c840'].map((fill, i) => `<circle cx="${MARGIN + 6 + i * 20}" cy="${MARGIN}" r="6" fill="${fill}"/>`),
    ...rows.map(drawnRow),
    '</svg>',
    '',
  ].join('\n')
}

/** docs/images/queue-show.svg as it must be now. */
export const queueShowPicture = async (): Promise<string> =>
  picture(await queueShowScreen(), 'deferd queue show: why a message is deferred, and when it is tried next')
