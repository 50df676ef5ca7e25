/** Dialogues have no password, no token and no content, whatever the host says. */
import { expect, test } from 'vitest'
import { secretsAreMasked, type Plant } from '../support/masked-sessions.ts'

/** test/long has 100,000. */
const SESSIONS = 40
/** One with cases of each mistake below. */
const SEED = 1

test(`${SESSIONS} sessions`, () => secretsAreMasked(SESSIONS, SEED))

const MISTAKES: readonly (readonly [name: string, Plant])[] = [
  ['lines of the client as they are', (recorder) => void (recorder.client = (line) => recorder.event(line))],
  [
    'steps of a login as commands',
    (recorder) => {
      const client = recorder.client.bind(recorder)
      recorder.client = (line, isLogin) => (isLogin === true ? recorder.event(line) : client(line))
    },
  ],
  ['challenges as they are', (recorder) => void (recorder.server = (lines) => lines.forEach((line) => recorder.event(line)))],
]

test.each(MISTAKES)('%s are found', async (_, plant) => {
  await expect(secretsAreMasked(SESSIONS, SEED, plant)).rejects.toThrow('Property failed')
})
