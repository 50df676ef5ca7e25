import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { postfixIsMissing } from '../../scripts/bench/postfix.ts'
import { reasonToSkip } from '../support/required.ts'
import { KNOWN, levelled, type Kind, type KnownDifference } from './known-differences.ts'
import { deliveries, facts, playBurst, playCut, playDialogue, sessionLines, settled, submit, submitLocally } from './observe.ts'
import { BURSTS, CUTS, DIALOGUES, MAILS, SENDMAILS } from './situations.ts'
import { startPair, type Pair, type System } from './systems.ts'

/** Situations of one kind that are played at once. */
const WIDTH = 8
/** Number of the first situation with sendmail; numbers make the domains of situations. */
const LOCAL = 1000

const reason = reasonToSkip('interop', await postfixIsMissing())

test('more than 300 situations are compared', () => {
  const ids = [...DIALOGUES, ...BURSTS, ...MAILS, ...SENDMAILS].map(({ id }) => id)
  expect(ids.length).toBeGreaterThan(400)
})

test('docs/postfix-differences.md lists the known differences', () => {
  const page = readFileSync(new URL('../../docs/postfix-differences.md', import.meta.url), 'utf8')
  const compared = page.slice(page.indexOf('## SMTP and sendmail'))
  const topics = [...compared.matchAll(/^\| (?!topic|-)([^|]+?) +\|/gm)].map(([, topic = '']) => topic)
  expect(topics.toSorted()).toEqual([...new Set(KNOWN.map(({ topic }) => topic))].toSorted())
})

describe.skipIf(reason !== null)(`deferd and Postfix${reason === null ? '' : ` (not run: ${reason})`}`, () => {
  let pair: Pair
  const seen = new Set<KnownDifference>()

  beforeAll(async () => {
    pair = await startPair()
  })
  afterAll(() => pair.stop())

  const both = async (observe: (system: System) => Promise<readonly string[]>) => Promise.all([observe(pair.deferd), observe(pair.postfix)])

  function compared(id: string, kind: Kind, observed: readonly [readonly string[], readonly string[]]): readonly object[] {
    const [deferd, postfix] = levelled(id, kind, observed, seen)
    return JSON.stringify(deferd) === JSON.stringify(postfix) ? [] : [{ id, kind, deferd, postfix }]
  }

  test('reply alike to commands', async () => {
    const different: object[] = []
    await inParallel(DIALOGUES, WIDTH, async (one) => {
      different.push(...compared(one.id, 'replies', await both((system) => playDialogue(system, one))))
    })
    await inParallel(BURSTS, WIDTH, async (one) => {
      different.push(...compared(one.id, 'replies', await both((system) => playBurst(system, one))))
    })
    expect(different).toEqual([])
  })

  test('log sessions alike that end early', async () => {
    const clients = CUTS.map((pieces, n) => ({ pieces, client: `127.0.2.${n + 1}`, id: `cut: ${pieces.at(-1)}` }))
    await inParallel(
      clients,
      WIDTH,
      async ({ pieces, client }) => void (await both((system) => playCut(system, pieces, client).then(() => []))),
    )
    const systems = [pair.deferd, pair.postfix]
    const isEnded = (system: System, client: string) => sessionLines(system, client).some((line) => line.startsWith('smtpd: disconnect '))
    await expect.poll(() => clients.filter(({ client }) => !systems.every((system) => isEnded(system, client)))).toEqual([])
    const different = clients.flatMap(({ id, client }) =>
      compared(id, 'log', [sessionLines(pair.deferd, client), sessionLines(pair.postfix, client)]),
    )
    expect(different).toEqual([])
  })

  test('take, log and deliver mail alike', async () => {
    const different: object[] = []
    await inParallel(MAILS, WIDTH, async (one, n) => {
      different.push(...compared(one.id, 'replies', await both((system) => submit(system, one, n))))
    })
    await inParallel(SENDMAILS, 2, async (one, n) => {
      different.push(...compared(one.id, 'replies', await both((system) => submitLocally(system, one, LOCAL + n))))
    })
    await settled([pair.deferd, pair.postfix], 2000)
    const submitted = [
      ...MAILS.map(({ id, content }, n) => ({ id, content, n })),
      ...SENDMAILS.map(({ id, input }, n) => ({ id, content: input, n: LOCAL + n })),
    ]
    for (const { id, content, n } of submitted) {
      different.push(...compared(id, 'log', [facts(pair.deferd, n), facts(pair.postfix, n)]))
      different.push(...compared(id, 'deliveries', [deliveries(pair.deferd, n, content), deliveries(pair.postfix, n, content)]))
    }
    expect(different).toEqual([])
  })

  test('differ in each way that is listed', () => {
    expect(KNOWN.filter((known) => !seen.has(known)).map(({ topic, kind }) => `${topic}: ${kind}`)).toEqual([])
  })
})

async function inParallel<T>(items: readonly T[], width: number, work: (item: T, n: number) => Promise<void>): Promise<void> {
  const left = items.entries()
  await Promise.all(
    Array.from({ length: width }, async () => {
      for (const [n, item] of left) await work(item, n)
    }),
  )
}
