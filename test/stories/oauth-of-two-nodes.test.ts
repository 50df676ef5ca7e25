/** Two relays on one queue, with one rotating refresh token: one request to the authority per lifetime of an access token. */
import { createTransport } from 'nodemailer'
import { expect, test } from 'vitest'
import { emptyQueue, type MemoryQueue } from '../../src/store/memory/queue-state.ts'
import { MINUTE } from '../../src/system/clock.ts'
import { createWorld, WORLD_CA, type World } from '../../src/testkit/index.ts'
import { oauthClient } from '../support/oauth-clients.ts'
import { startWorldNode, type WorldNode } from '../support/world-node.ts'

/** Next hops, whose mail is spread over the nodes. */
const HOPS = Array.from({ length: 8 }, (_, n) => `smtp${n}.office365.com`)
const USER = 'app@contoso.example'

interface Node extends WorldNode {
  /** Outcomes of its attempts. */
  readonly outcomes: string[]
}

async function startNode(world: World, queue: MemoryQueue, index: number, refreshToken: string): Promise<Node> {
  const outcomes: string[] = []
  const node = await startWorldNode(world, queue, {
    hostname: `n${index}.example`,
    port: 2600 + index,
    settings: {
      transport_maps: Object.fromEntries(HOPS.map((hop, n) => [`far${n}.example`, `smtp:[${hop}]:587`])),
      smtp_tls_security_level: 'encrypt',
      smtp_sasl_oauth: 'm365',
      oauth: {
        m365: { provider: 'microsoft', tenant: 'contoso.example', grant: 'refresh_token', client_id: 'app', refresh_token_file: '/file' },
      },
    },
    lease: 5 * MINUTE,
    secrets: ({ oauth }) => ({
      passwords: HOPS.map((hop) => `[${hop}]:587 ${USER}:\n`).join(''),
      tls: { ca: WORLD_CA },
      oauth: new Map([...oauth].map(([name, table]) => [name, oauthClient(table, { ca: WORLD_CA, refreshToken })])),
    }),
    onEvent: (event) => {
      if (event.kind === 'attempted') outcomes.push(...event.attempts.map(({ outcome }) => outcome))
    },
  })
  return { ...node, outcomes }
}

test('two nodes deliver mail for three hours with one request per lifetime of an access token', async () => {
  await using world = await createWorld()
  const authority = world.authority({ clients: { app: {} }, rotates: 'strict', lifetime: '1h' })
  for (const hop of HOPS) authority.protects(hop)
  const refreshToken = authority.logIn('app', USER)
  const queue = emptyQueue()
  const nodes = [await startNode(world, queue, 1, refreshToken), await startNode(world, queue, 2, refreshToken)]
  // Until the nodes have divided the shards.
  await world.advance('30m')
  const to: string[] = []
  for (let round = 0; round < 18; round++) {
    for (const node of nodes) {
      to.push(`to${to.length}@far${to.length % HOPS.length}.example`)
      await createTransport(node.transport()).sendMail({ from: USER, to: to.at(-1), text: 'hi' })
    }
    await world.advance('10m')
  }
  expect(to.filter((address) => world.mailbox(address).mails().length !== 1)).toEqual([])
  for (const { outcomes } of nodes) {
    expect(outcomes.length).toBeGreaterThan(5)
    expect(new Set(outcomes)).toEqual(new Set(['delivered']))
  }
  // The first, then one at 80 % of each lifetime, of whichever node.
  const requests = authority.requests()
  expect(requests.map(({ status, at }) => [status, Math.floor((at - (requests[0]?.at ?? 0)) / 60)])).toEqual([
    [200, 0],
    [200, 48],
    [200, 96],
    [200, 144],
  ])
  expect(nodes.flatMap(({ relay }) => relay.accessTokens.states().map(({ problem }) => problem))).toEqual([null, null])
  for (const node of nodes) await node.stop()
})
