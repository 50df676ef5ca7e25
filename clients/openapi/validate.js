/** Prints what three validators find in OpenAPI documents, as JSON: `node validate.js FILE…`. An empty list when each accepts all of them. */
import { readFileSync } from 'node:fs'
import SwaggerParser from '@apidevtools/swagger-parser'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { Validator } from '@seriousme/openapi-schema-validator'

/** `GET /lab/v1/` is the lab itself. */
const RULES = { 'no-path-trailing-slash': 'off' }

const VALIDATORS = {
  seriousme: async (text) => {
    const { valid, errors } = await new Validator().validate(JSON.parse(text))
    return valid ? [] : [errors]
  },
  redocly: async (text) => {
    const config = await createConfig({ extends: ['recommended'], rules: RULES })
    const problems = await lintFromString({ source: text, absoluteRef: 'openapi.json', config })
    return problems.map(({ ruleId, severity, message, location }) => ({ ruleId, severity, message, at: location[0]?.pointer }))
  },
  'swagger-parser': async (text) =>
    SwaggerParser.validate(JSON.parse(text)).then(
      () => [],
      (error) => [String(error)],
    ),
}

const found = []
for (const file of process.argv.slice(2)) {
  const text = readFileSync(file, 'utf8')
  for (const [validator, findings] of Object.entries(VALIDATORS))
    for (const finding of await findings(text)) found.push({ file, validator, finding })
}
process.stdout.write(`${JSON.stringify(found)}\n`)
