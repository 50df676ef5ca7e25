/** Screens of the page, for each role, as markup. */
import { FILES_FOLDER } from '../../src/page/static-files.ts'
import { errorMessage } from '../../src/system/caught-error.ts'
import { ADMIN, PageScreens } from '../support/page-screens.ts'
import type { Filled } from './filled-world.ts'
import type { Collect } from './outputs.ts'

const VIEWER = { ...ADMIN, name: 'token:viewer', role: 'viewer', content: false } as const
const REQUESTERS = {
  admin: ADMIN,
  viewer: VIEWER,
  limited: { ...ADMIN, name: 'token:limited', role: 'operator', destinations: '*.example.org' },
} as const

/** Paths of screens; the words in capitals stand for ids of messages in that state. */
export const SCREENS: readonly string[] = [
  '',
  'charts/flow',
  'trends',
  'destinations',
  'destinations?sort=name',
  'destinations/a.example.org',
  'destinations/b.example.org',
  'destinations/none.example',
  'destinations/a.example.org/suspend',
  'destinations/b.example.org/resume',
  'causes',
  'messages',
  'messages?queue=hold',
  'messages?queue=scheduled',
  'messages?recipient=*@a.example.org',
  'messages?typo=x',
  'messages/DEFERRED',
  'messages/HELD',
  'messages/LATER',
  'messages/TRASH',
  'messages/RETURNED',
  'messages/DELIVERED',
  'messages/none',
  'messages/DEFERRED/sessions/1',
  'messages/DEFERRED/content',
  'history',
  'history?status=5.*',
  'history/resend',
  'history/erase',
  'search?q=a.example.org',
  'search?q=deferred@us.example',
  'operations/new?operation=hold&recipient=*@a.example.org',
  'operations/new?operation=delete&scope=ids&id=DEFERRED',
  'operations/1',
  'audit',
  'planner',
  'providers',
  'providers/google',
  'providers/google/suspend',
  'providers/google/resume',
  'deliverability',
  'deliverability/good.example',
  'domain-check',
  'events',
  'webhooks',
  'webhooks/app',
  'webhooks/app/replay',
  'webhooks/app/secret',
  'webhooks/app/remove',
  'webhooks/app/test',
  'new-webhook',
  'suppressions',
  'suppressions/remove?scope=us.example&address=eve@far.example',
  'suppressions/resume?scope=us.example',
  'new-suppression',
  'tokens',
  'new-token',
  'tokens/ci/remove',
  'quotas',
  'quotas/reset?key=app@us.example',
  'shares',
  'nodes',
  'nodes/mx1/drain',
  'nodes/mx1/undrain',
  'nodes/mx1/forget',
  'settings',
  'log',
  'zone',
]

/** The path with the ids of messages in place of their states. */
export const withIds = (path: string, ids: Filled['ids']): string =>
  path.replace(/[A-Z]{4,}/g, (state) => ids[state.toLowerCase() as keyof Filled['ids']])

export async function pageOutputs({ world, ids }: Filled, collect: Collect): Promise<void> {
  const screens = new PageScreens(world)
  for (const [role, requester] of Object.entries(REQUESTERS))
    for (const path of SCREENS) {
      const text = await screens.text(withIds(path, ids), requester).catch((error: unknown) => `no screen: ${errorMessage(error)}\n`)
      // The name of the folder is that of the contents of its files.
      collect(`page/${role}/${path}`, text.replaceAll(FILES_FOLDER, 'static/FILES'))
    }
}
