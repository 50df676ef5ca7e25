/** Random sessions: the server ends each of them, without internal errors, and independently of their segmentation. */
import { test } from 'vitest'
import { nothingBreaks, sessionsAreTheSameHoweverCut } from '../support/session-fuzz.ts'

/** Number of sessions of each kind; test/long has 100,000. */
const SESSIONS = 4_000

test('a session does not depend on segmentation, and a message is accepted exactly when 250 was sent', { timeout: 120_000 }, () =>
  sessionsAreTheSameHoweverCut(SESSIONS),
)

test('mixed hostile input causes no internal error and leaks nothing', { timeout: 120_000 }, () => nothingBreaks(SESSIONS))
