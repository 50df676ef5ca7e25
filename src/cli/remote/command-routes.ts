/**
 * The API and the commands: each command names the routes of the API that it uses with `--host`, or the reason why it works on the machine of
 * the relay only. A command without either fails a test (test/cli/command-routes.test.ts).
 */
import type { Command } from 'commander'

const FILES = 'it uses the configuration and the files of that machine'
const QUEUE = 'it uses the files or the database of the queue'
const NOTHING = 'it asks no relay'

/** Routes as method and path below that of the API, or the reason why there are none. */
type Reach = readonly string[] | string

const OPERATION = ['POST /operations']

const REACH: Readonly<Record<string, Reach>> = {
  demo: NOTHING,
  start: 'it is the daemon',
  reload: FILES,
  status: ['GET /now', 'GET /nodes', 'GET /series'],
  top: ['GET /now', 'GET /nodes'],
  'queue list': ['GET /messages'],
  'queue show': ['GET /messages/:id', 'GET /destinations', 'GET /messages/:id/sessions/:session'],
  'queue cat': ['GET /messages/:id', 'GET /messages/:id/content'],
  'queue shape': ['GET /messages'],
  'queue causes': ['GET /causes', 'GET /destinations', 'GET /destinations/:name/causes'],
  'queue shares': ['GET /shares'],
  'queue upgrade': QUEUE,
  'queue move': QUEUE,
  'queue flush': OPERATION,
  'queue hold': OPERATION,
  'queue release': OPERATION,
  'queue requeue': OPERATION,
  'queue expire': OPERATION,
  'queue delete': OPERATION,
  'queue restore': OPERATION,
  'queue reschedule': OPERATION,
  'queue reclass': OPERATION,
  'history list': ['GET /history'],
  'history resend': ['POST /history/resend', 'GET /operations/:id'],
  'history erase': ['POST /history/erase', 'GET /operations/:id'],
  'destination list': ['GET /destinations'],
  'destination show': ['GET /destinations'],
  'destination suspend': ['GET /destinations', 'POST /destinations/:name/suspend'],
  'destination resume': ['GET /destinations', 'POST /destinations/:name/resume'],
  'provider list': ['GET /providers'],
  'provider show': ['GET /providers/:name'],
  'provider suspend': ['POST /providers/:name/suspend'],
  'provider resume': ['POST /providers/:name/resume'],
  'node list': ['GET /nodes'],
  'node show': ['GET /nodes'],
  'node settings': ['GET /nodes', 'GET /settings'],
  'node drain': ['GET /nodes', 'POST /nodes/:name/drain'],
  'node undrain': ['GET /nodes', 'POST /nodes/:name/undrain'],
  'node forget': ['GET /nodes', 'DELETE /nodes/:name'],
  config: FILES,
  'map query': FILES,
  check: FILES,
  'check domain': ['POST /domain-checks', 'GET /domain-checks/:domain'],
  'import postfix': QUEUE,
  'schedule list': ['GET /schedules'],
  'schedule show': ['GET /schedules/:name'],
  'schedule run': ['POST /schedules/:name/run'],
  backup: QUEUE,
  restore: QUEUE,
  salvage: QUEUE,
  audit: ['GET /audit'],
  'operation list': ['GET /audit'],
  'operation cancel': ['GET /operations/:id', 'DELETE /operations/:id'],
  'operation undo': ['GET /operations/:id', 'POST /operations/:id/undo'],
  page: 'its login needs no token, because only users of that machine can ask for it; with one, open the URL in a browser',
  trace: 'it shows addresses and replies of all mail, and only users of that machine can ask for it',
  'webhook add': ['POST /subscriptions'],
  'webhook list': ['GET /subscriptions'],
  'webhook remove': ['DELETE /subscriptions/:name'],
  'webhook test': ['POST /subscriptions/:name/test'],
  'webhook secret': ['POST /subscriptions/:name/secret'],
  'webhook replay': ['POST /subscriptions/:name/replay'],
  'token add': ['POST /tokens'],
  'token list': ['GET /tokens'],
  'token remove': ['DELETE /tokens/:name'],
  'user add': FILES,
  'user remove': FILES,
  'user list': FILES,
  'quota list': ['GET /quotas'],
  'quota show': ['GET /quotas/:key'],
  'quota reset': ['POST /quotas/reset'],
  'suppression list': ['GET /suppressions', 'GET /suppression-stops'],
  'suppression show': ['GET /suppressions/:address'],
  'suppression export': ['GET /suppressions'],
  'suppression add': ['POST /suppressions'],
  'suppression remove': ['POST /suppressions/remove'],
  'suppression import': ['POST /suppressions/import'],
  'suppression resume': ['POST /suppressions/resume'],
  'access add': ['POST /access'],
  'access list': ['GET /access'],
  'access remove': ['DELETE /access/:subject/:key'],
  'dkim generate': FILES,
  'dkim show': FILES,
  'dkim check': FILES,
  'dkim sign': FILES,
  'dkim verify': FILES,
  'tls show': ['GET /sts-policies'],
  'tls list': ['GET /sts-policies'],
  'tls forget': ['DELETE /sts-policies/:domain'],
  'oauth list': ['GET /oauth'],
  'oauth show': FILES,
  'oauth test': 'it logs in with the secrets, and from the network, of that machine',
  'oauth login': 'it writes the refresh token to a file of that machine',
  'bounce preview': FILES,
  retry: NOTHING,
  'simulate schedule': NOTHING,
  'simulate run': NOTHING,
  'simulate contention': NOTHING,
  sink: NOTHING,
  'sink show': NOTHING,
  record: NOTHING,
  lab: NOTHING,
  help: [],
}

/** Words of all commands of the table. */
export const LISTED_COMMANDS: readonly string[] = Object.keys(REACH)

/** The words of a command, such as `queue list`. */
export function wordsOf(command: Command): string {
  const words: string[] = []
  for (let level = command; level.parent !== null; level = level.parent) words.unshift(level.name())
  return words.join(' ')
}

/** Commands with an action: those without subcommands, and those with options of their own, such as sink. */
export const actingIn = (command: Command): readonly Command[] => [
  ...(command.commands.length === 0 || (command.parent !== null && command.options.length > 0) ? [command] : []),
  ...command.commands.flatMap(actingIn),
]

const reachOf = (words: string): Reach => {
  const reach = REACH[words]
  if (reach === undefined) throw new Error(`the command ${words} names neither its routes nor a reason`)
  return reach
}

/** Routes that a command uses; empty for one that works on the machine of the relay only. Throws for a command without a row. */
export function routesOf(words: string): readonly string[] {
  const reach = reachOf(words)
  return typeof reach === 'string' ? [] : reach
}

/** Reason why a command works on the machine of the relay only; null for one that uses the API. Throws for a command without a row. */
export function whyHere(words: string): string | null {
  const reach = reachOf(words)
  return typeof reach === 'string' ? reach : null
}
