import { test } from 'vitest'
import { inFlatMemory } from '../support/flat-memory.ts'
import { secretsAreMasked } from '../support/masked-sessions.ts'

const ROUNDS = 20
const EACH = 5_000

test('100,000 dialogues have no password, no token and no content', () =>
  inFlatMemory('dialogues, masked', ROUNDS, (round) => secretsAreMasked(EACH, round)))
