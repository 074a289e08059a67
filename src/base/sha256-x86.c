/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256 with the SHA extensions of x86. The instructions take the state as ABEF and CDGH; each sha256rnds2
 * does two rounds. The four words of the message schedule that a group of rounds has used are replaced by those
 * of the fourth group after it.
 */
#include "base/sha256-block.h"

#ifdef __x86_64__

#include <cpuid.h>
#include <immintrin.h>

bool sha256_has_x86(void)
{
	unsigned a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSSE3) || !(c & bit_SSE4_1))
		return false;
	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
}

static inline __m128i load_vector(const void *p)
{
	return _mm_loadu_si128((const __m128i *)p);
}

__attribute__((target("sha,sse4.1"))) void sha256_blocks_x86(uint32_t state[8], const uint8_t *data,
							     size_t n)
{
	const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
	__m128i cdab = _mm_shuffle_epi32(load_vector(state), 0xb1);
	__m128i efgh = _mm_shuffle_epi32(load_vector(state + 4), 0x1b);
	__m128i abef = _mm_alignr_epi8(cdab, efgh, 8);
	__m128i cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);

	for (; n > 0; n--, data += 64) {
		const __m128i abef_before = abef, cdgh_before = cdgh;
		__m128i w[4];

		for (int i = 0; i < 4; i++)
			w[i] = _mm_shuffle_epi8(load_vector(data + 16 * i), big_endian);
#pragma GCC unroll 16
		for (int i = 0; i < 16; i++) {
			__m128i *now = &w[i % 4], *last = &w[(i + 3) % 4];
			__m128i sum = _mm_add_epi32(*now, load_vector(sha256_constants + 4 * i));

			cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
			abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
			*now = _mm_add_epi32(_mm_sha256msg1_epu32(*now, w[(i + 1) % 4]),
					     _mm_alignr_epi8(*last, w[(i + 2) % 4], 4));
			*now = _mm_sha256msg2_epu32(*now, *last);
		}
		abef = _mm_add_epi32(abef, abef_before);
		cdgh = _mm_add_epi32(cdgh, cdgh_before);
	}
	cdab = _mm_shuffle_epi32(abef, 0x1b);
	efgh = _mm_shuffle_epi32(cdgh, 0xb1);
	_mm_storeu_si128((__m128i *)state, _mm_blend_epi16(cdab, efgh, 0xf0));
	_mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(efgh, cdab, 8));
}

#else

bool sha256_has_x86(void)
{
	return false;
}

void sha256_blocks_x86(uint32_t state[8], const uint8_t *data, size_t n)
{
	sha256_blocks_plain(state, data, n);
}

#endif
