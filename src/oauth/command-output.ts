/** The output of a command that prints an access token. Pure. */
import { DEFAULT_LIFETIME, isAccessToken, LONGEST_LIFETIME, secondsOf, type TokenAnswer } from './token-answer.ts'

/** Parses the token and, in a second line, its lifetime in seconds. A reason does not repeat the output. */
export function commandOutput(output: string): TokenAnswer {
  const [token = '', seconds = ''] = output.split(/\r?\n/)
  if (!isAccessToken(token)) return { kind: 'temporary', why: 'the first line of its output is no access token' }
  if (seconds !== '' && !/^\d{1,9}$/.test(seconds)) {
    return { kind: 'temporary', why: 'the second line of its output is no lifetime in seconds' }
  }
  return { kind: 'token', token, lifetime: secondsOf(seconds, LONGEST_LIFETIME) ?? DEFAULT_LIFETIME }
}
