/** The tokens of programs that use the admin API, the form that adds one, and the question before one is removed. */
import { CLIENT_ROLES } from '../../../http/requests/requester.ts'
import type { AccessTokenJson, AccessTokensJson } from '../../../resources/access-token-json.ts'
import { html, type Part } from '../../../presentation/html.ts'
import { asCommand } from '../../markup/command-lines.ts'
import { checkBox, choice, field, type FormField, type FormProblem } from '../../markup/fields.ts'
import { buttonLink, heading, type Screen } from '../../markup/frame.ts'
import { facts, table, type Column } from '../../markup/html-table.ts'
import { linkTo } from '../../markup/links.ts'
import { marked } from '../../markup/marks.ts'
import { questionPanel } from '../../markup/question-panel.ts'
import { secretPanel } from '../../markup/secret-panel.ts'
import { clockTime, distance, instantOf } from '../../markup/times.ts'
import type { View } from '../../markup/view.ts'
import { breakable } from '../../markup/long-words.ts'

const removalPlace = (name: string): string => `tokens/${encodeURIComponent(name)}/remove`

const roleOf = ({ role, content }: AccessTokenJson): string => `${role}${content ? ' with content' : ''}`

/** Uses are recorded to the hour. */
const lastUse = (view: View, { last_used_time: at }: AccessTokenJson): Part =>
  at === null ? 'never' : html`in the hour from ${clockTime(view, at)}`

const endOf = (view: View, { expire_time: at }: AccessTokenJson): Part => {
  if (at === null) return 'never'
  return instantOf(at) <= view.now ? marked('expired', html`expired ${distance(view, at)}`) : distance(view, at)
}

const columnsOf = (view: View): readonly Column<AccessTokenJson>[] => [
  { heading: 'Name', isTitle: true, cell: ({ name }) => breakable(name) },
  { heading: 'Role', cell: roleOf },
  { heading: 'Destinations', kind: 'code', cell: ({ destinations }) => (destinations === null ? 'all' : breakable(destinations)) },
  { heading: 'Added', cell: ({ added_time: at, added_by: by }) => html`${distance(view, at)} <span class="faint">by ${by}</span>` },
  { heading: 'Last used', cell: (one) => lastUse(view, one) },
  { heading: 'Expires', cell: (one) => endOf(view, one) },
  {
    heading: 'Action',
    label: '',
    kind: 'actions',
    cell: ({ name }) => buttonLink(linkTo(view, removalPlace(name)), 'Remove…', 'small'),
  },
]

export const tokensScreen = (view: View, { tokens }: AccessTokensJson): Screen => ({
  title: 'Tokens',
  place: 'tokens',
  main: html`${heading(
    'Tokens',
    'With a token, a program uses the admin API. The queue keeps the hash of a token only.',
    buttonLink(linkTo(view, 'new-token'), 'Add…'),
  )}
  ${table({
    caption: 'Tokens of programs',
    columns: columnsOf(view),
    rows: tokens,
    kind: 'programs',
    empty: 'No program has a token.',
  })}
  ${asCommand(['token', 'list'], { method: 'GET', path: 'api/v1/tokens' })}`,
})

/** The fields of the form, as they were sent. */
export interface TokenText {
  readonly name: string
  readonly role: string
  readonly content: boolean
  readonly destinations: string
  readonly expires: string
}

export const NO_TOKEN: TokenText = { name: '', role: 'viewer', content: false, destinations: '', expires: '' }

const ROLES: Readonly<Record<(typeof CLIENT_ROLES)[number], string>> = {
  viewer: 'viewer: reads',
  operator: 'operator: also acts on mail',
  sender: 'sender: only submits mail',
  admin: 'admin: does everything',
}

const tokenFields = (given: TokenText): readonly FormField[] => [
  field({ name: 'name', label: 'Name', value: given.name, example: 'grafana', isRequired: true }),
  choice(
    'Role',
    'role',
    given.role,
    CLIENT_ROLES.map((role) => ({ value: role, text: ROLES[role] })),
  ),
  checkBox('Also header and body of messages', 'content', given.content),
  field({ name: 'destinations', label: 'Only mail of these destinations (optional)', value: given.destinations, example: '*.example.com' }),
  field({ name: 'expires', label: 'Expires after (optional)', value: given.expires, example: '90d' }),
]

/** The question for a new token. `problem` is the mistake in the form that was sent; null for none. */
export const newTokenScreen = (view: View, given: TokenText, problem: FormProblem | null): Screen =>
  questionPanel({
    place: 'tokens',
    question: 'Add a token',
    about: 'It has effect at once, on all nodes of a shared queue. The next screen shows it once.',
    action: linkTo(view, 'new-token'),
    button: 'Add the token',
    fields: tokenFields(given),
    problem,
    back: linkTo(view, 'tokens'),
    words: ['token', 'add', 'NAME', '--role', 'viewer'],
    call: { method: 'POST', path: 'api/v1/tokens', body: { name: 'NAME', role: 'viewer' } },
  })

export const tokenShownScreen = (view: View, name: string, token: string): Screen =>
  secretPanel({
    place: 'tokens',
    title: `The token ${name} was added`,
    what: 'token',
    secret: token,
    about: 'The program sends it as Authorization: Bearer TOKEN.',
    next: [linkTo(view, 'tokens'), 'Tokens'],
  })

export const tokenRemovalScreen = (view: View, token: AccessTokenJson): Screen => {
  const { name, added_time: at, added_by: by } = token
  return questionPanel({
    place: 'tokens',
    question: `Remove the token ${name}?`,
    about: 'Requests with it are refused from then on, on all nodes.',
    action: linkTo(view, removalPlace(name)),
    button: `Remove ${name}`,
    facts: facts([
      ['role', roleOf(token)],
      ['destinations', token.destinations, 'wide'],
      ['added', html`${distance(view, at)} by ${by}`],
      ['last used', lastUse(view, token)],
      ['undo', html`<strong>not possible</strong>`],
    ]),
    back: linkTo(view, 'tokens'),
    words: ['token', 'remove', name],
    call: { method: 'DELETE', path: `api/v1/tokens/${encodeURIComponent(name)}` },
  })
}
