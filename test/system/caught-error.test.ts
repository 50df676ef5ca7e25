import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { errorCode, errorExitCode, errorMessage } from '../../src/system/caught-error.ts'

function caught(action: () => unknown): unknown {
  try {
    return action()
  } catch (error) {
    return error
  }
}

test('a system error has its code and its message', () => {
  const error = caught(() => readFileSync('/nonexistent'))
  expect([errorCode(error), errorExitCode(error)]).toEqual(['ENOENT', undefined])
  expect(errorMessage(error)).toContain('no such file')
})

test('an error may name its exit code', () => {
  expect(errorExitCode(Object.assign(new Error('x'), { exitCode: 75 }))).toBe(75)
})

test.each([
  [undefined, 'undefined'],
  [null, 'null'],
  ['text', 'text'],
  [{ code: 1 }, '[object Object]'],
])('%j, which is not an error, has neither code', (value, text) => {
  expect([errorCode(value), errorExitCode(value), errorMessage(value)]).toEqual(['', undefined, text])
})
