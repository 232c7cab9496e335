// For editors and `depcruise` itself; the rules are written in tools/import-rules.ts.
import { importRules, readingOptions } from './tools/import-rules.ts'

export default { forbidden: importRules, options: readingOptions }
