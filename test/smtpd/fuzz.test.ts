/** The server survives sessions nobody would think of, ends them, and does the same however they are cut into packets. */
import { test } from 'vitest'
import { nothingBreaks, sessionsAreTheSameHoweverCut } from '../support/session-fuzz.ts'

/** Of each kind; test/long has ten times as many. */
const SESSIONS = 10_000

test('a session is the same however its lines are cut, and a message is taken exactly when that is said', { timeout: 120_000 }, () =>
  sessionsAreTheSameHoweverCut(SESSIONS),
)

test('whatever comes at once, nothing breaks and nothing lasts', { timeout: 120_000 }, () => nothingBreaks(SESSIONS))
