/** The commands and requests that screens show work as they are written: the program takes the words, and the API answers the request. */
import type { Command } from 'commander'
import { afterEach, expect, test } from 'vitest'
import { processShell } from '../../src/cli/process-shell.ts'
import { buildProgram } from '../../src/cli/program.ts'
import { BASE } from '../../src/http/command-protocol.ts'
import { addWebhook, newWebhook } from '../../src/queries/programs/webhook-changes.ts'
import { newSigningSecret } from '../../src/subscriptions/new-secret.ts'
import { seededRandom } from '../../src/system/random.ts'
import { ApiWorld } from '../support/api-world.ts'
import { plain, wholeWords } from '../support/page-client.ts'
import { ADMIN, PageScreens } from '../support/page-screens.ts'

let opened: ApiWorld | undefined
afterEach(async () => {
  await opened?.close()
  opened = undefined
})

const FILTER = 'sender=%2A%40us.example&recipient=ann%40a.example.org'
const SCREENS = [
  '',
  'trends',
  'trends?range=24h',
  'trends?from=2026-01-01T00:00',
  'destinations',
  'destinations/a.example.org',
  'destinations/a.example.org/suspend',
  'destinations/never.example',
  'causes',
  'messages',
  `messages?${FILTER}&queue=deferred&older_than=1s&reply=busy&arrived_after=2020-01-01T10:00&attempts_over=0&status=4.*`,
  'history',
  `history?${FILTER}&outcome=delivered&since=2h`,
  'history?left_after=2020-01-01T10:00&left_before=2020-01-02T10:00',
  `history/erase?recipient=ann%40a.example.org&back=history`,
  'audit',
  'audit?who=ann&action=hold&request_id=r&recorded_after=2020-01-01T10:00',
  'events',
  'webhooks',
  'webhooks/app',
  'webhooks/app/replay?events=waiting',
  'webhooks/app/secret',
  'webhooks/app/test',
  'webhooks/app/remove',
  'new-webhook',
  'suppressions',
  'suppressions?address=ann%40a.example&reason=complaint&scope=%2A&destination=a.example&since=2h',
  'new-suppression',
  'suppressions/resume?scope=us.example',
  'quotas',
  'shares',
  'tokens',
  'new-token',
  'providers',
  'planner?policy=doubling&other=fixed',
  'deliverability',
  'deliverability/us.example',
  'domain-check',
  'log',
  'settings',
  `operations/new?operation=hold&scope=filter&${FILTER}`,
  'operations/new?operation=delete&scope=filter',
]

/** Words of a shell: plain, or in single quotes. */
const wordsOf = (line: string): readonly string[] =>
  [...line.matchAll(/(?:[^\s']|'[^']*')+/g)].map(([word]) => word.replaceAll(/'([^']*)'/g, '$1'))

const shell = processShell()

/** Resolves when the program takes the words. Rejects with the mistake; nothing is carried out. */
async function parsed(words: readonly string[]): Promise<void> {
  const program = await buildProgram(shell, words)
  const stub = (command: Command): void => {
    if (command.commands.length === 0) command.action(() => undefined)
    command.commands.forEach(stub)
  }
  stub(program)
  await program.parseAsync(words, { from: 'user' })
}

test('every command that a screen shows is taken by the program, and every request is answered', async () => {
  opened = await ApiWorld.open('memory')
  const { api, queue } = opened
  for (let n = 0; n < 4; n++)
    await queue.accept([n === 0 ? 'ann@ok.example' : `ann@${['a', 'b'][n % 2]}.example.org`], { sender: 'app@us.example' })
  await queue.advance(60_000)
  const secret = newSigningSecret(seededRandom(1))
  await addWebhook(
    api.api.view,
    newWebhook.parse({ name: 'app', to: 'https://app.example/hook', types: ['recipient.bounced'], secret }),
    ADMIN,
  )
  const shown = new PageScreens(opened)
  const { messages } = (await api.get('/messages')).json
  const [message = ''] = messages.map((one) => one.queue_id)
  let [commands, requests] = [0, 0]
  for (const screen of [...SCREENS, `messages/${message}`, `messages/${message}/content?show=headers`]) {
    const markup = wholeWords(await shown.text(screen))
    for (const [, code = ''] of markup.matchAll(/<code>((?:deferd|curl) [^<]*)<\/code>/g)) {
      const line = plain(code)
      const [, path] = /^curl (?!.* -[Xd] ).*"\$DEFERD_URL\/(.*)"$/.exec(line) ?? []
      if (path !== undefined) {
        requests++
        expect([screen, line, (await api.get(`/${path}`.slice(BASE.length), { as: 'admin' })).status]).toEqual([screen, line, 200])
      } else if (line.startsWith('deferd ')) {
        commands++
        const mistake = await parsed(wordsOf(line).slice(1)).catch((error: unknown) => String(error))
        expect([screen, line, mistake]).toEqual([screen, line, undefined])
      }
    }
  }
  expect(commands).toBeGreaterThan(30)
  expect(requests).toBeGreaterThan(20)
})
