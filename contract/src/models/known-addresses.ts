/**
 * Addresses of OpenAI-compatible providers with one public address, by provider name. For these a key is enough; no
 * address has to be configured.
 */
export const knownAddresses: Readonly<Record<string, string>> = {
  deepseek: 'https://api.deepseek.com/v1',
  gemini: 'https://generativelanguage.googleapis.com/v1beta/openai',
  groq: 'https://api.groq.com/openai/v1',
  mistral: 'https://api.mistral.ai/v1',
  openrouter: 'https://openrouter.ai/api/v1',
  xai: 'https://api.x.ai/v1',
}
