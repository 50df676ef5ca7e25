/** Routes of the API for the suppression list. */
import { z } from 'zod'
import { HTTP_PROBLEMS, Problem, type ProblemKind } from '../http/problem-details.ts'
import { jsonBody } from '../http/request-body.ts'
import { actorOf, type Requester } from '../http/requests/requester.ts'
import { CURSOR_PROBLEM } from '../queries/cursor.ts'
import type { QueueView } from '../queries/queue-view.ts'
import { expiresIn } from '../queries/named-time.ts'
import { durationText } from '../queries/message-query.ts'
import {
  suppressionFilter,
  suppressionLines,
  suppressionPage,
  suppressionRemoval,
  suppressionsOf,
  suppressionStops,
} from '../queries/records/suppression-entries.ts'
import {
  suppressionPageShape,
  suppressionRemovalShape,
  suppressionShape,
  suppressionStopsShape,
} from '../resources/records/suppression-json.ts'
import { SUPPRESSION_REASONS } from '../store/records/suppression-entry.ts'
import { importedLines, suppressedAddress, suppressionScope } from '../suppression/import-lines.ts'
import { SECOND } from '../system/clock.ts'
import { plural } from '../presentation/text.ts'
import { apiRoute, assertUnlimited, json, page, pageCursor, pageLimit, SMALL_BODY, type ApiRoute } from './route/api-route.ts'
import { listFormat, wholeList, wholeListAnswers } from './route/whole-lists.ts'

type ListView = Pick<QueueView, 'suppressionChanges' | 'reader' | 'clock'>

const IMPORT_REFUSED: ProblemKind = {
  slug: 'invalid-lines',
  status: 422,
  title: 'Invalid lines',
  about: 'Lines of an import are invalid, and nothing was imported; `errors` lists the first 1,000 of them by number.',
}

/** Lines that a refusal of an import names. */
const MOST_LISTED = 1_000
/** Maximum size of an import, about 250,000 lines. */
const LARGEST_IMPORT = 32 * 1024 * 1024

const addressShape = z
  .string()
  .max(1_000)
  .transform((text, context) => {
    const address = suppressedAddress(text)
    if (address === undefined) context.addIssue({ code: 'custom', message: 'expected an address, or @domain' })
    return address ?? z.NEVER
  })
const scopeShape = z
  .string()
  .max(255)
  .transform((text, context) => {
    const scope = suppressionScope(text)
    if (scope === undefined) context.addIssue({ code: 'custom', message: 'expected * or a sender domain' })
    return scope ?? z.NEVER
  })
export const suppressionKey = z.strictObject({ scope: scopeShape, address: addressShape })
export const suppressionScopeShape = z.strictObject({ scope: scopeShape })
const reasonShape = z.enum(SUPPRESSION_REASONS)

export const suppressionConditions = z.strictObject({
  scope: scopeShape.optional().describe('sender domain; * for the entries that concern all senders'),
  address: addressShape.optional(),
  reason: reasonShape.optional(),
  destination: z.string().min(1).max(1_000).optional().describe('destination whose replies listed the address'),
  since: durationText.optional().describe('listed less long ago than this: 30m, 2h, 1d'),
})
const listQuery = z.strictObject({ ...suppressionConditions.shape, limit: pageLimit, after: pageCursor, format: listFormat })

const removalShape = z.union([
  z.strictObject({ entries: z.array(suppressionKey).min(1).max(1_000), dry_run: z.boolean().default(false) }),
  z
    .strictObject({
      filter: suppressionConditions.describe('conditions that all hold; those of the list'),
      all: z.boolean().default(false).describe('true to remove all entries, with an empty filter'),
      dry_run: z.boolean().default(false),
    })
    .refine(({ filter, all }) => (Object.keys(filter).length === 0) === all, 'name a condition, or set `all` without any'),
])

export const newSuppression = z.strictObject({
  scope: scopeShape.default('*'),
  address: addressShape,
  reason: reasonShape.exclude(['bounce']).default('manual'),
  text: z.string().max(500).nullable().default(null).describe('text that the refusal quotes'),
  expires_in: expiresIn('the entry ends'),
})

export async function addSuppression(
  { suppressionChanges }: ListView,
  { expires_in: seconds, ...entry }: z.output<typeof newSuppression>,
  requester: Requester,
): Promise<void> {
  const duration = seconds === null ? null : Math.round(seconds * SECOND)
  await suppressionChanges().add({ ...entry, duration }, actorOf(requester))
}

/** Throws Problem for a sender domain whose listings are not stopped. */
export async function resumeListings({ suppressionChanges }: ListView, scope: string, requester: Requester): Promise<void> {
  if (await suppressionChanges().resume(scope, actorOf(requester))) return
  throw new Problem(HTTP_PROBLEMS.unknown, `the listing of addresses of ${scope} is not stopped`)
}

const readRoutes = (view: ListView): readonly ApiRoute[] => [
  apiRoute({
    method: 'GET',
    path: '/suppressions',
    role: 'viewer',
    summary: 'The suppression list',
    about:
      'Entries that have not ended, ordered by scope and address. With `Accept: application/x-ndjson`, the lines of `deferd suppression list --json`; `format=csv` is what `deferd suppression import` reads.',
    query: listQuery,
    answers: { 200: [{ about: 'a page', shape: suppressionPageShape }, ...wholeListAnswers('all entries', suppressionShape)] },
    problems: [CURSOR_PROBLEM],
    handler: async (request) => {
      assertUnlimited(request)
      const { limit, after, format: _format, ...query } = request.query
      const entries = () => suppressionLines(view, query)
      const whole = wholeList(request, { name: 'suppressions', shape: suppressionShape, rowsOf: null, entries })
      return whole ?? page(await suppressionPage(view, { ...query, limit, after }), request.written, 'after')
    },
  }),
  apiRoute({
    method: 'GET',
    path: '/suppressions/:address',
    role: 'viewer',
    summary: 'The entries that concern one address',
    about:
      'Those of the address and of its `@domain`, in all scopes, also those that have ended and those that only count refusals. The members of `deferd suppression show --json`.',
    answers: { 200: { about: 'the entries', shape: z.object({ entries: z.array(suppressionShape) }) } },
    handler: async (request) => {
      assertUnlimited(request)
      return json(await suppressionsOf(view, addressIn(request.parameters['address'] ?? '')))
    },
  }),
  apiRoute({
    method: 'GET',
    path: '/suppression-stops',
    role: 'viewer',
    summary: 'Sender domains for which no address is listed',
    about: 'After 1,000 listings within an hour, until an operator resumes it.',
    answers: { 200: { about: 'the domains', shape: suppressionStopsShape } },
    handler: async (request) => {
      assertUnlimited(request)
      return json(await suppressionStops(view))
    },
  }),
]

/** Throws Problem for text that is no address. */
function addressIn(text: string): string {
  const address = suppressedAddress(text)
  if (address !== undefined) return address
  throw new Problem(HTTP_PROBLEMS.invalid, `${JSON.stringify(text)} is neither an address nor @domain`)
}

const importRoute = (view: ListView): ApiRoute =>
  apiRoute({
    method: 'POST',
    path: '/suppressions/import',
    role: 'operator',
    summary: 'Import addresses into the suppression list',
    about: 'As `deferd suppression import`: all lines or none, in place of the entries with the same scopes and addresses.',
    body: jsonBody(
      z.strictObject({
        text: z.string().describe('an address in each line, or CSV with a heading'),
        scope: scopeShape.default('*').describe('scope of lines that name none'),
        dry_run: z.boolean().default(false),
      }),
      LARGEST_IMPORT,
    ),
    example: { text: 'address,reason\nann@example.net,complaint\n', scope: 'news.example.com' },
    answers: { 200: { about: 'the number of entries', shape: z.object({ imported: z.int() }) } },
    problems: [IMPORT_REFUSED],
    handler: async (request) => {
      assertUnlimited(request)
      const { text, scope, dry_run: isDry } = request.body
      const { clock } = view
      const { entries, mistakes } = importedLines(text, { scope, now: clock.now(), wall: clock.wall })
      const [first] = mistakes
      if (first !== undefined) {
        const errors = mistakes.slice(0, MOST_LISTED).map((one) => ({ pointer: '/text', detail: `line ${one.line}: ${one.text}` }))
        const others = mistakes.length === 1 ? '' : `, and ${plural(mistakes.length - 1, 'other line')}`
        throw new Problem(IMPORT_REFUSED, `nothing was imported: line ${first.line}: ${first.text}${others}`, { errors })
      }
      if (!isDry) await view.suppressionChanges().import(entries, actorOf(request.requester))
      return json({ imported: entries.length })
    },
  })

const changeRoutes = (view: ListView): readonly ApiRoute[] => [
  apiRoute({
    method: 'POST',
    path: '/suppressions',
    role: 'operator',
    summary: 'Put an address on the suppression list',
    about: 'As `deferd suppression add`, in place of the entry with the same scope and address.',
    body: jsonBody(newSuppression, SMALL_BODY),
    example: { scope: 'news.example.com', address: 'ann@example.net', reason: 'complaint' },
    answers: { 200: { about: 'the entry', shape: z.object({ scope: z.string(), address: z.string() }) } },
    handler: async (request) => {
      assertUnlimited(request)
      const { scope, address } = request.body
      await addSuppression(view, request.body, request.requester)
      return json({ scope, address })
    },
  }),
  apiRoute({
    method: 'POST',
    path: '/suppressions/remove',
    role: 'operator',
    summary: 'Remove entries of the suppression list',
    about: 'Those of `entries`, or those that match a filter. Refusals that were counted of the addresses are forgotten.',
    body: jsonBody(removalShape, SMALL_BODY * 4),
    example: { filter: { since: '2h', reason: 'bounce', destination: 'example.net' }, dry_run: true },
    answers: { 200: { about: 'what was removed', shape: suppressionRemovalShape } },
    handler: async (request) => {
      assertUnlimited(request)
      const { body, requester } = request
      const selection =
        'entries' in body
          ? ({ kind: 'keys', keys: body.entries } as const)
          : ({ kind: 'filter', filter: suppressionFilter(body.filter, view) } as const)
      return json(
        suppressionRemoval(await view.suppressionChanges().remove({ selection, dryRun: body.dry_run, ...actorOf(requester) }), view),
      )
    },
  }),
  apiRoute({
    method: 'POST',
    path: '/suppressions/resume',
    role: 'operator',
    summary: 'List addresses of a sender domain again',
    about: 'As `deferd suppression resume`, after too many addresses of the domain were listed within an hour.',
    body: jsonBody(suppressionScopeShape, SMALL_BODY),
    example: { scope: 'news.example.com' },
    answers: { 200: { about: 'resumed', shape: z.object({ scope: z.string() }) } },
    problems: [HTTP_PROBLEMS.unknown],
    handler: async (request) => {
      assertUnlimited(request)
      const { scope } = request.body
      await resumeListings(view, scope, request.requester)
      return json({ scope })
    },
  }),
]

export const suppressionRoutes = (view: ListView): readonly ApiRoute[] => [...readRoutes(view), ...changeRoutes(view), importRoute(view)]
