/** Answers of the API to each role: every route that reads. */
import { SECOND } from '../../src/system/clock.ts'
import type { Filled } from './filled-world.ts'
import type { Collect } from './outputs.ts'

const ROLES = ['admin', 'viewer', 'limited', 'sender'] as const

/** Paths of GET requests; `ID` stands for the id of a deferred message. */
export const PATHS: readonly string[] = [
  '/whoami',
  '/now',
  '/config',
  '/settings',
  '/nodes',
  '/messages',
  '/messages?queue=hold',
  '/messages?queue=deferred&sort=due',
  '/messages?recipient=*@a.example.org&limit=1',
  '/messages?typo=x',
  '/messages/count',
  '/messages/ID',
  '/messages/none',
  '/messages/ID/parts',
  '/messages/ID/content',
  '/messages/ID/sessions/1',
  '/senders',
  '/destinations',
  '/destinations?limit=1',
  '/destinations/a.example.org',
  '/destinations/none.example',
  '/destinations/a.example.org/causes',
  '/causes',
  '/providers',
  '/providers/google',
  '/providers/none',
  '/history',
  '/history?status=5.*',
  '/audit',
  '/audit?limit=1',
  '/operations/1',
  '/events',
  '/events?types=message.accepted&limit=1',
  '/log',
  '/search?q=a.example.org',
  '/search?q=deferred@us.example',
  '/series?since=1h&step=1h',
  '/tokens',
  '/access',
  '/sts-policies',
  '/oauth',
  '/schedules',
  '/schedules/nightly',
  '/schedules/none',
  '/shares',
  '/quotas',
  '/quotas/app@us.example',
  '/suppressions',
  '/suppressions?reason=complaint',
  '/suppressions/eve@far.example',
  '/suppressions/none@far.example',
  '/suppression-stops',
  '/subscriptions',
  '/subscriptions/app',
  '/subscriptions/app/parked',
  '/deliverability',
  '/domain-checks',
  '/domain-checks/good.example',
  '/openapi.json',
  '/no-such-route',
]

export async function apiOutputs({ world, ids }: Filled, collect: Collect): Promise<void> {
  for (const role of ROLES)
    for (const path of PATHS) {
      const { status, text, headers } = await world.api.get(path.replace('ID', ids.deferred), {
        as: role,
        headers: { 'x-request-id': 'r-1' },
      })
      collect(`api/${role}/GET ${path}`, `${status} ${headers.get('content-type') ?? ''}\n${text}\n`)
      // The figures of some seconds ago are kept.
      await world.queue.advance(SECOND)
    }
}
