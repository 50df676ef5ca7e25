/**
 * The texts of notices, read from where the configuration says.
 */
import { readFileSync } from 'node:fs'
import { loadTemplates, type LoadedTemplates } from '../bounce/templates.ts'
import { ConfigError, type LoadedConfig } from '../config/load.ts'

/** Throws a ConfigError that tells all that is wrong. */
export function templatesOf({ config, written }: Pick<LoadedConfig, 'config' | 'written'>): LoadedTemplates {
  const path = config.bounce_template_file
  if (path === '') return loadTemplates({ config, written })
  let content: string
  try {
    content = readFileSync(path, 'utf8')
  } catch (cause) {
    throw new ConfigError([{ where: 'bounce_template_file', text: `cannot be read: ${(cause as Error).message}` }])
  }
  return loadTemplates({ config, written }, { path, content })
}
