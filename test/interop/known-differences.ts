/** The differences that docs/postfix-differences.md lists, as changes that make what Postfix does equal to what deferd does. */

export type Kind = 'replies' | 'log' | 'deliveries'

export interface KnownDifference {
  /** First column of the table. */
  readonly topic: string
  readonly kind: Kind
  /** Situations in which the difference may occur, by id. */
  readonly where: RegExp
  /** Changes an observation of either system to a common form. */
  readonly level: (lines: readonly string[]) => readonly string[]
}

const without = (pattern: RegExp) => (lines: readonly string[]) => lines.filter((line) => !pattern.test(line))
const replaced = (pattern: RegExp, by: string) => (lines: readonly string[]) => lines.map((line) => line.replaceAll(pattern, by))
/** Header fields in alphabetical order; none is folded. */
const sorted = (lines: readonly string[]): readonly string[] =>
  lines.map((line) => {
    const [envelope = '', ...rest] = line.split('\n')
    const end = rest.indexOf('')
    return [envelope, ...rest.slice(0, end).toSorted(), ...rest.slice(end)].join('\n')
  })
const nothing = (): readonly string[] => []

export const KNOWN: readonly KnownDifference[] = [
  { topic: 'limits of DSN parameters', kind: 'replies', where: /ENVID=x{101}$|ORCPT=rfc822;x{500}$|NOTIFY=NEVER,NEVER$/, level: nothing },
  { topic: 'long command lines', kind: 'replies', where: /^a line of more than/, level: nothing },
  { topic: 'sessions without mail in the log', kind: 'log', where: /^cut: /, level: without(/: client=/) },
  {
    topic: 'sessions without mail in the log',
    kind: 'log',
    where: /^cut: BDAT/,
    level: replaced(/(?<=warning: )ID(?=: .*BDAT)/g, 'NOQUEUE'),
  },
  {
    topic: 'pipelined commands in the log',
    kind: 'log',
    where: /^cut: /,
    level: replaced(/(improper command pipelining after \w+ from \S+): .*/g, '$1'),
  },
  { topic: 'strict paths', kind: 'replies', where: /:<@b\.test>$|: MAIL FROM:a@b\.test>$/, level: nothing },
  { topic: 'internationalized addresses', kind: 'replies', where: /<\u00c3\u00a4@b\.test>$/, level: nothing },
  { topic: 'NUL characters', kind: 'replies', where: /^a NUL$/, level: nothing },
  { topic: 'NUL characters', kind: 'log', where: /^a NUL$/, level: nothing },
  { topic: 'NUL characters', kind: 'deliveries', where: /^a NUL$/, level: nothing },
  {
    topic: 'routes in header addresses',
    kind: 'deliveries',
    where: /a trailing dot|a percent sign|a bang path/,
    level: replaced(/(?<=\nTo: ).*/g, 'ann'),
  },
  { topic: 'ORCPT', kind: 'deliveries', where: /^(?!DSN parameters|ORCPT)/, level: replaced(/ ?ORCPT=rfc822;\S+/g, '') },
  {
    topic: 'BODY',
    kind: 'deliveries',
    where: /^header: MIME$|raw UTF-8$|^8-bit bytes$|^sendmail: -B$/,
    level: replaced(/ ?BODY=\w+/g, ''),
  },
  { topic: 'long lines in the log', kind: 'log', where: /^header: a long line$|^a body line/, level: without(/: breaking line /) },
  { topic: 'resent-message-id in the log', kind: 'log', where: /^header: Resent-To/, level: without(/: resent-message-id=/) },
  {
    topic: 'suppressed notices in the log',
    kind: 'log',
    where: /^a refused recipient of the null sender$/,
    level: without(/: no notification is sent: /),
  },
  {
    topic: 'pickup lines in the log',
    kind: 'log',
    where: /^sendmail: -f without a domain$/,
    level: replaced(/(?<=^pickup: .* from=<)app(?=>)/g, 'app@origin.example'),
  },
  { topic: 'sendmail -G', kind: 'log', where: /^sendmail: -G$/, level: replaced(/message-id=.*/g, 'message-id=…') },
  { topic: 'sendmail -G', kind: 'deliveries', where: /^sendmail: -G$/, level: nothing },
  {
    topic: 'sendmail -F with non-ASCII text',
    kind: 'deliveries',
    where: /^sendmail: -F with non-ASCII$/,
    level: replaced(/(?<=\nFrom: ).*(?= <)/g, '…'),
  },
  { topic: 'fields added by sendmail', kind: 'deliveries', where: /^sendmail: /, level: sorted },
  { topic: 'exit codes of sendmail', kind: 'replies', where: /^sendmail: (?:no recipients|an unknown option)$/, level: nothing },
]

/** Both observations in the common form of the known differences, which are noted in `seen` when they changed something. */
export function levelled(
  id: string,
  kind: Kind,
  [deferd, postfix]: readonly [readonly string[], readonly string[]],
  seen: Set<KnownDifference>,
): readonly [readonly string[], readonly string[]] {
  if (JSON.stringify(deferd) === JSON.stringify(postfix)) return [deferd, postfix]
  let pair: readonly [readonly string[], readonly string[]] = [deferd, postfix]
  for (const known of KNOWN.filter((one) => one.kind === kind && one.where.test(id))) {
    pair = [known.level(pair[0]).map(trimmed).toSorted(), known.level(pair[1]).map(trimmed).toSorted()]
    seen.add(known)
  }
  return pair
}

const trimmed = (text: string): string => text.replaceAll(/ +\n/g, '\n').replaceAll(/ +\|/g, ' |').trimEnd()
