/**
 * Terms of the sources and pages. Names and phrases that were replaced by standard terms do not occur, and a doc comment begins with
 * a verb or a noun phrase.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { expect, test } from 'vitest'

const RETIRED_IDENTIFIERS = `
  Guests Conduct Reception House Desk showOut turnAway GeneratedStep WireReader WireHandler RelayAccess Standing Standings
  WarmBodies GivenUp Suspects Pauses DueMail PolicyBook StoreGuard Settling Receipt ReceiptFacts Indebted
  IndebtedMessage Debt debtsOf debtFor oweDelay SecondTries PaceLimits RightOfWay MessageStory Wakes sleepingScheduler
  OperationsDesk DaemonDesk ownDesk openDesk takeUp TakenUp coreOver storeOver AskedThread judge Judgement Trouble
  harmless hopStatus lastTrouble insist FarSide FarEvent RuleMemory RelayLives Ledger Departures DepartedRecord
  OutcomeBoard SaslPasswords TlsTickets
`
  .trim()
  .split(/\s+/)

const RETIRED_FILES = `
  guests conduct reception wire wire-reader relay-access standings warm-bodies given-up suspects pauses policy-book
  store-guard settling due-mail receipt received parts debts departed operating calls second-tries pace late
  explanation original outcome-board mx right-of-way own-desk operations-desk story standing logged-daemon manual
  submission far-side speech circumstances relay-lives ledger idle turn
`
  .trim()
  .split(/\s+/)

const RETIRED_PHRASES = `
  far side, warm body, warm bodies, stopwatch, the house, guest, guests, desk, in debt, indebted, debts, a debt,
  owes a word, is owed, are owed, set aside for, fair weather, stormy weather, set free, nobody is told,
  second pair of eyes, writes to you, tells all, goes on as if, the store is ill, rises again, the ear of, knocks,
  fact sheet, postfix-semantics
`
  .trim()
  .split(/,\s+/)

const root = join(import.meta.dirname, '..')
const filesUnder = (folder: string, ending: string): readonly string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ending))
    .map((name) => join(folder, name))

const sources = filesUnder('src', '.ts')
const pages = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', ...filesUnder('docs', '.md'), ...filesUnder('src', '.md')]
const read = (path: string): string => readFileSync(join(root, path), 'utf8')

/** `file:line: word` for each of the words in a text, as whole words. */
function found(path: string, words: readonly string[], flags: string): readonly string[] {
  const pattern = new RegExp(String.raw`(?<![\w-])(?:${words.join('|')})(?![\w-])`, flags)
  const lines = read(path).split('\n')
  return lines.flatMap((line, i) => [...line.matchAll(pattern)].map(([word]) => `${path}:${i + 1}: ${word}`))
}

test('no retired identifier is in the sources or pages', () => {
  expect([...sources, ...pages].flatMap((path) => found(path, RETIRED_IDENTIFIERS, 'g'))).toEqual([])
})

test('no file has a retired name', () => {
  expect(sources.filter((path) => RETIRED_FILES.includes(basename(path, '.ts')))).toEqual([])
})

test('no retired phrase is in the sources or pages', () => {
  expect([...sources, ...pages].flatMap((path) => found(path, RETIRED_PHRASES, 'gi'))).toEqual([])
})

test('no comment begins with a free relative clause', () => {
  const commented = [
    ...sources,
    ...['test', 'scripts', 'bin'].flatMap((folder) => [...filesUnder(folder, '.ts'), ...filesUnder(folder, '.js')]),
  ]
  const opening = /^\s*(?:\/\*\*|\*|\/\/)\s+(?:What|Who|Whoever|Whatever|Whom|Where|Wherever|Nobody|Somebody|Everybody)\b.*/
  // Looks at the first line of each comment, because later lines continue a sentence.
  const beginning = commented.flatMap((path) =>
    read(path)
      .split('\n')
      .filter((line, i, lines) => opening.test(line) && !/^\s*(?:\*\s+\S|\/\/)/.test(lines[i - 1] ?? ''))
      .map((line) => `${path}: ${line.trim()}`),
  )
  expect(beginning).toEqual([])
})
